"""Progress of a training run: ProgressWriter sums and decides when to report, ProgressPrinter reports as CNTK does."""

from __future__ import annotations

import operator
import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

HEADER = (" average      since    average      since      examples",
          "    loss       last     metric       last              ",
          " " + "-" * 54)
HEARTBEAT_SECONDS = 10.0


class Totals(NamedTuple):
    """Sums over some updates: their number, their samples, and the summed loss and metric (None where there is none)."""

    updates: int = 0
    samples: int = 0
    loss_sum: float | None = None
    metric_sum: float | None = None

    @property
    def loss(self) -> float | None:
        """The loss per sample; None without one."""
        return None if self.loss_sum is None else self.loss_sum / self.samples

    @property
    def metric(self) -> float | None:
        """The metric per sample; None without one."""
        return None if self.metric_sum is None else self.metric_sum / self.samples

    def plus(self, samples: int, loss: float | None, metric: float | None) -> Totals:
        """These totals and one more update."""
        if not self.updates:
            return Totals(1, samples, loss, metric)
        if (self.metric_sum is None) != (metric is None):
            raise ValueError("a progress writer expected a metric in every update of an epoch or in none, got both kinds; "
                             "give the metric each time")
        return Totals(self.updates + 1, self.samples + samples, _sum(self.loss_sum, loss), _sum(self.metric_sum, metric))


class ProgressWriter:
    """Base of what reports progress: weighs by samples, keeps the windows and the schedule; subclasses only output.

    A schedule is `freq` and `first`: None reports at summaries only, 0 at updates 1, 3, 7, 15, ... of an epoch, and
    n > 0 at every n-th update; the first `first` updates are reported one by one unless freq is 0.

    Args:
        freq, first: schedule of training updates (minibatches).
        test_freq, test_first: schedule of test updates.
        distributed_freq, distributed_first: schedule of synchronizations between ranks.
        rank: this process's rank, None in a single process; writers to one shared place are silent on ranks other than 0.
        clock: a function that returns the time in seconds.

    Raises:
        TypeError: if a frequency, a number of updates or the rank is not an integer.
        ValueError: if one of them is negative.
    """

    def __init__(self, freq: int | None = None, first: int = 0, test_freq: int | None = None, test_first: int = 0,
                 distributed_freq: int | None = None, distributed_first: int = 0, *, rank: int | None = None,
                 clock: Callable[[], float] = time.perf_counter) -> None:
        who = type(self).__name__
        if rank is not None:
            check_count(who, "rank", rank)
        self.rank = rank
        self.training = Window(who, "", freq, first)
        self.test = Window(who, "test_", test_freq, test_first)
        self.distributed = Window(who, "distributed_", distributed_freq, distributed_first)
        self._clock = clock
        self._started = self._epoch_started = self._test_started = clock()

    @property
    def seconds(self) -> float:
        """Seconds since the run started, the time before the checkpoint that was restored included."""
        return self._clock() - self._started

    @property
    def is_silent(self) -> bool:
        """Whether another rank writes to the place that all ranks share."""
        return self.rank not in (None, 0)

    def update_training(self, samples: int, loss: float, metric: float | None = None) -> None:
        """Take in one training minibatch.

        Args:
            samples: its samples; a minibatch of none is left out.
            loss: the sum of the loss over them.
            metric: the sum of the metric over them, None without a metric.

        Raises:
            ValueError: if samples is negative, or a metric comes in some updates of an epoch only.
        """
        if self.training.add(samples, float(loss), None if metric is None else float(metric)):
            self.on_training_update(*self.training.report())
        self.on_training_update_end()

    def update_test(self, samples: int, metric: float) -> None:
        """Take in one test minibatch: its samples and the sum of the metric over them."""
        if self.test.add(samples, None, float(metric)):
            self.on_test_update(*self.test.report())

    def update_distributed_sync(self, samples: int) -> None:
        """Take in one synchronization between ranks, after this many samples since the one before."""
        if self.distributed.add(samples, None, None):
            self.on_distributed_sync_update(*self.distributed.report())

    def write_training_summary(self) -> None:
        """Report the epoch that ends here and start the next one."""
        epoch, totals = self.training.summarize()
        now = self._clock()
        self.on_training_summary(epoch, totals, now - self._epoch_started)
        self._epoch_started = self._clock()

    def write_test_summary(self) -> None:
        """Report the evaluation that ends here and start the next one."""
        number, totals = self.test.summarize()
        now = self._clock()
        self.on_test_summary(number, totals, now - self._test_started)
        self._test_started = self._clock()

    def write(self, name: str, value: float) -> None:
        """Report a number of your own, such as the learning rate, at the current training update."""
        self.on_value(name, float(value))

    def log(self, message: str) -> None:
        """Report a message; writers that only hold numbers leave it out."""
        self.on_message(message)

    def close(self) -> None:
        """Finish what is being written; may be called more than once."""

    def state_dict(self) -> dict[str, Any]:
        """The sums and counts of the run so far, of values that JSON can hold."""
        now = self._clock()
        return {"training": self.training.state_dict(), "test": self.test.state_dict(),
                "distributed": self.distributed.state_dict(), "seconds": now - self._started,
                "epoch_seconds": now - self._epoch_started, "test_seconds": now - self._test_started}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue the run whose state_dict this is: epochs, updates and samples count on from there."""
        self.training.load_state_dict(state["training"])
        self.test.load_state_dict(state["test"])
        self.distributed.load_state_dict(state["distributed"])
        now = self._clock()
        self._started = now - state["seconds"]
        self._epoch_started = now - state["epoch_seconds"]
        self._test_started = now - state["test_seconds"]

    def on_training_update(self, first_update: int, last_update: int, since_start: Totals, since_last: Totals) -> None:
        """Output the updates first_update..last_update of the epoch, as `since_last`; `since_start` is the epoch so far."""

    def on_training_update_end(self) -> None:
        """Called after every training update, reported or not."""

    def on_test_update(self, first_update: int, last_update: int, since_start: Totals, since_last: Totals) -> None:
        """Output some updates of an evaluation."""

    def on_distributed_sync_update(self, first_update: int, last_update: int, since_start: Totals,
                                   since_last: Totals) -> None:
        """Output some synchronizations between ranks."""

    def on_training_summary(self, epoch: int, totals: Totals, seconds: float) -> None:
        """Output an epoch, numbered from 1, that took this long."""

    def on_test_summary(self, number: int, totals: Totals, seconds: float) -> None:
        """Output an evaluation, numbered from 1."""

    def on_value(self, name: str, value: float) -> None:
        """Output a number of the user's."""

    def on_message(self, message: str) -> None:
        """Output a message."""


class ProgressPrinter(ProgressWriter):
    """Prints progress in CNTK's lines, on standard output (rank 0 only) or into a file for each rank.

    Args:
        freq: 0 prints a table with rows at updates 1, 3, 7, 15, ... of an epoch; n > 0 a line every n updates; None only
            the line at an epoch's end.
        first: this many updates at the start of an epoch get a line each (freq other than 0).
        tag: printed in brackets in the line of an epoch.
        log_to_file: a path; lines are appended there instead, with `rank` and the rank behind the name if there is one.
        rank: this process's rank, None in a single process.
        gen_heartbeat: print `PROGRESS: 35.00%` (epochs finished, of num_epochs) on standard output, at most every 10 seconds.
        num_epochs: the epochs that the run will have, for the line of an epoch.
        test_freq, test_first: as freq and first, for tests.
        metric_is_pct: print the metric, a fraction, as a percentage.
        distributed_freq, distributed_first: as freq and first, for synchronizations between ranks.
        clock: a function that returns the time in seconds.

    Raises:
        OSError: if the log file cannot be opened.
        TypeError, ValueError: as ProgressWriter; num_epochs must be positive.

    Source: CNTK 2, cntk.logging.ProgressPrinter; its table has no line at an epoch's end, this one has.
    """

    def __init__(self, freq: int | None = None, first: int = 0, tag: str = "", log_to_file: str | os.PathLike | None = None,
                 rank: int | None = None, gen_heartbeat: bool = False, num_epochs: int | None = None,
                 test_freq: int | None = None, test_first: int = 0, metric_is_pct: bool = True,
                 distributed_freq: int | None = None, distributed_first: int = 0, *,
                 clock: Callable[[], float] = time.perf_counter) -> None:
        super().__init__(freq, first, test_freq, test_first, distributed_freq, distributed_first, rank=rank, clock=clock)
        if num_epochs is not None:
            check_count(type(self).__name__, "num_epochs", num_epochs, least=1)
        self.tag, self.num_epochs, self.metric_is_pct = tag, num_epochs, metric_is_pct
        self._path = None if log_to_file is None else os.fspath(log_to_file) + ("" if rank is None else f"rank{rank}")
        self._heartbeat = -HEARTBEAT_SECONDS if gen_heartbeat else None
        if self._path is not None:
            open(self._path, "a").close()  # a path that cannot be written is an error now, not at the end of an epoch
        if freq == 0:
            for line in HEADER:
                self.on_message(line)

    def on_training_update(self, first_update: int, last_update: int, since_start: Totals, since_last: Totals) -> None:
        if self.training.freq == 0:
            self.on_message(_row(since_start, since_last))
        else:
            self.on_message(f" Minibatch[{first_update:4d}-{last_update:4d}]: {self._averages(since_last)};")

    def on_training_update_end(self) -> None:
        if self._heartbeat is None or self.is_silent or self.seconds - self._heartbeat < HEARTBEAT_SECONDS:
            return
        self._heartbeat = self.seconds
        print(f"PROGRESS: {100 * self.training.summaries / self.num_epochs if self.num_epochs else 0:.2f}%", flush=True)

    def on_test_update(self, first_update: int, last_update: int, since_start: Totals, since_last: Totals) -> None:
        if self.test.freq == 0:
            self.on_message(_row(since_start, since_last))
        else:
            self.on_message(f" Evaluation Minibatch[{first_update:4d}-{last_update:4d}]: {self._averages(since_last)};")

    def on_distributed_sync_update(self, first_update: int, last_update: int, since_start: Totals,
                                   since_last: Totals) -> None:
        self.on_message(f"Distributed training: #Syncs elapsed = {since_last.updates}, "
                        f"#Samples elapsed = {since_last.samples}")

    def on_training_summary(self, epoch: int, totals: Totals, seconds: float) -> None:
        number = str(epoch) if self.num_epochs is None else f"{epoch} of {self.num_epochs}"
        tag = f"[{self.tag}] " if self.tag else ""
        averages = self._averages(totals) or "loss = 0.000000 * 0"
        speed = totals.samples / seconds if seconds > 0 else 0.0
        self.on_message(f"Finished Epoch[{number}]: {tag}{averages} {seconds:0.3f}s ({speed:5.1f} samples/s);")

    def on_test_summary(self, number: int, totals: Totals, seconds: float) -> None:
        average = self._averages(totals) or self._metric(0.0, 0)
        self.on_message(f"Finished Evaluation [{number}]: Minibatch[1-{totals.updates}]: {average};")

    def on_value(self, name: str, value: float) -> None:
        self.on_message(f"{name}: {value:g}")

    def on_message(self, message: str) -> None:
        if self._path is not None:
            with open(self._path, "a", encoding="utf-8") as file:
                file.write(message + "\n")
        elif not self.is_silent:
            print(message, flush=True)

    def _averages(self, totals: Totals) -> str:
        """`loss = 0.693147 * 250, metric = 50.40% * 250`, or the part of it that there is."""
        parts = []
        if totals.loss is not None:
            parts.append(f"loss = {totals.loss:0.6f} * {totals.samples}")
        if totals.metric is not None:
            parts.append(self._metric(totals.metric, totals.samples))
        return ", ".join(parts)

    def _metric(self, metric: float, samples: int) -> str:
        return f"metric = {100 * metric:0.2f}% * {samples}" if self.metric_is_pct else f"metric = {metric:0.6f} * {samples}"


class Window:
    """Totals since an epoch's start and since the last report, and whether a report is due."""

    def __init__(self, who: str, what: str, freq: int | None, first: int) -> None:
        if freq is not None:
            check_count(who, f"{what}freq", freq)
        check_count(who, f"{what}first", first)
        self.freq, self.first = freq, first
        self.summaries = self.total_updates = self.total_samples = 0
        self.since_start = self.since_last = Totals()

    def add(self, samples: int, loss: float | None, metric: float | None) -> bool:
        """Take in one update; returns whether to report now."""
        samples = operator.index(samples)
        if samples < 0:
            raise ValueError(f"a progress writer expected a number of samples, got {samples}")
        if samples == 0:
            return False
        self.since_start = self.since_start.plus(samples, loss, metric)
        self.since_last = self.since_last.plus(samples, loss, metric)
        self.total_updates += 1
        self.total_samples += samples
        update = self.since_start.updates
        if self.freq == 0:
            return update & (update + 1) == 0
        return update <= self.first or self.freq is not None and update % self.freq == 0

    def report(self) -> tuple[int, int, Totals, Totals]:
        """First and last update of the window, the totals since the start and of the window, which is closed."""
        last, window = self.since_start.updates, self.since_last
        self.since_last = Totals()
        return last - window.updates + 1, last, self.since_start, window

    def summarize(self) -> tuple[int, Totals]:
        """The number of this summary, from 1, and the totals since the start, which is now."""
        totals = self.since_start
        self.since_start = self.since_last = Totals()
        self.summaries += 1
        return self.summaries, totals

    def state_dict(self) -> dict[str, Any]:
        return {"summaries": self.summaries, "total_updates": self.total_updates, "total_samples": self.total_samples,
                "since_start": list(self.since_start), "since_last": list(self.since_last)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.summaries, self.total_updates = state["summaries"], state["total_updates"]
        self.total_samples = state["total_samples"]
        self.since_start, self.since_last = Totals(*state["since_start"]), Totals(*state["since_last"])


def check_count(who: str, what: str, value: int, least: int = 0) -> None:
    """Raise unless value is an integer of at least `least`."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{who} expected an integer {what}, got {value!r}")
    if value < least:
        raise ValueError(f"{who} expected {what} >= {least}, got {value}")


def _sum(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a + b


def _row(since_start: Totals, since_last: Totals) -> str:
    """A row of the table: columns without a number stay blank."""
    columns = (since_start.loss, since_last.loss, since_start.metric, since_last.metric)
    return " " + "".join(" " * 11 if c is None else f"{c:8.3g}   " for c in columns) + f" {since_start.samples:10d}"
