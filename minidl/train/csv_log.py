"""Progress as a table in a CSV file: one row a report, safe on disk as soon as it is made."""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Callable
from pathlib import Path

from .progress import ProgressWriter, Totals

COLUMNS = ("kind", "epoch", "update", "samples", "loss", "metric", "seconds", "value")
KINDS = ("minibatch", "epoch", "test_minibatch", "test")


class CSVProgressWriter(ProgressWriter):
    """Appends progress to a CSV file, which is opened for each row; a file that exists is continued (resume).

    The columns `epoch` (from 1), `update`, `samples` and `seconds` say how far training has come in the whole run, also
    in the rows of a test. `loss` and `metric` are means per sample: over the updates since the last row for the kinds
    `minibatch` and `test_minibatch`, over all of it for `epoch` and `test`. A number of your own has its name as kind and
    stands in the column `value`.

    Args:
        path: the file.
        freq, first, test_freq, test_first: schedules as in ProgressWriter.
        rank: this process's rank, None in a single process; only rank 0 writes.
        clock: a function that returns the time in seconds.

    Raises:
        OSError: when the first row is written, if the file cannot be.
        ValueError: when the first row is written, if the file has other columns.
    """

    def __init__(self, path: str | os.PathLike, freq: int | None = 10, first: int = 0, *, test_freq: int | None = None,
                 test_first: int = 0, rank: int | None = None, clock: Callable[[], float] = time.perf_counter) -> None:
        super().__init__(freq, first, test_freq, test_first, rank=rank, clock=clock)
        self._path = Path(path)
        self._checked = False

    def on_training_update(self, first_update: int, last_update: int, since_start: Totals, since_last: Totals) -> None:
        self._append("minibatch", self.training.summaries + 1, since_last.loss, since_last.metric)

    def on_training_summary(self, epoch: int, totals: Totals, seconds: float) -> None:
        self._append("epoch", epoch, totals.loss, totals.metric)

    def on_test_update(self, first_update: int, last_update: int, since_start: Totals, since_last: Totals) -> None:
        self._append("test_minibatch", self._epoch(), None, since_last.metric)

    def on_test_summary(self, number: int, totals: Totals, seconds: float) -> None:
        self._append("test", self._epoch(), None, totals.metric)

    def on_value(self, name: str, value: float) -> None:
        if name in KINDS:
            raise ValueError(f"CSVProgressWriter expected a name other than {', '.join(KINDS)}, got {name!r}")
        self._append(name, self._epoch(), value=value)

    def _epoch(self) -> int:
        """The epoch under way, or the one that has just ended."""
        return max(self.training.summaries + (self.training.since_start.updates > 0), 1)

    def _append(self, kind: str, epoch: int, loss: float | None = None, metric: float | None = None,
                value: float | None = None) -> None:
        if self.is_silent:
            return
        with open(self._path, "a+", newline="", encoding="utf-8") as file:
            rows = csv.writer(file, lineterminator="\n")
            if file.tell() == 0:
                rows.writerow(COLUMNS)
            elif not self._checked:
                self._check_header(file)
            self._checked = True
            rows.writerow((kind, epoch, self.training.total_updates, self.training.total_samples, loss, metric,
                           f"{self.seconds:.6f}", value))

    def _check_header(self, file) -> None:
        file.seek(0)
        found = file.readline().rstrip("\r\n")
        if found != ",".join(COLUMNS):
            raise ValueError(f"CSVProgressWriter expected {self._path} to start with {','.join(COLUMNS)}, got {found!r}; "
                             "give another path")
