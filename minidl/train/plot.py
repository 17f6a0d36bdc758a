"""Curves of training logs: reads what CSVProgressWriter and ProgressPrinter wrote and draws it with matplotlib."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from .csv_log import COLUMNS
from .progress import HEADER


class Point(NamedTuple):
    """Means per sample at a place of a run: after this many training samples and finished epochs."""

    samples: int
    epochs: int
    loss: float | None
    metric: float | None


@dataclass
class Log:
    """The points of one log, each list in the order of training."""

    path: str
    minibatches: list[Point] = field(default_factory=list)
    epochs: list[Point] = field(default_factory=list)
    tests: list[Point] = field(default_factory=list)


def read_log(path: str | os.PathLike) -> Log:
    """Read a log of CSVProgressWriter or ProgressPrinter; other lines of a text log are left out.

    What a resumed run did once more replaces, in a CSV log, what it did before.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if a line is malformed or no line reports training; names the file and the line.
    """
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = file.read().splitlines()
    log = Log(os.fspath(path))
    if lines and lines[0].startswith(COLUMNS[0] + ","):
        _read_csv(lines, log)
    else:
        _read_text(lines, log)
    if not log.minibatches and not log.epochs:
        raise ValueError(f"{path}:{len(lines)}: expected a log of CSVProgressWriter or ProgressPrinter, but the file ends "
                         "without a line on training progress")
    return log


def plot_logs(paths: Sequence[str | os.PathLike], output: str | os.PathLike, *, by: str = "samples",
              log_scale: bool = False) -> Path:
    """Draw the training loss, and the metric where a log has one, of each log as a curve; tests are dots on the metric.

    Args:
        paths: logs of CSVProgressWriter or ProgressPrinter.
        output: the picture to write; its suffix says the format, PNG without one.
        by: horizontal axis: "samples" draws minibatches (epochs where the log has no minibatches), "epochs" whole epochs.
        log_scale: a logarithmic axis of the loss.

    Returns:
        The path of the picture.

    Raises:
        ImportError: if matplotlib is not installed.
        OSError, ValueError: as read_log; also for `by`, an unknown format, or a log without what `by` asks for.
    """
    if by not in ("samples", "epochs"):
        raise ValueError(f'plot_logs expected by="samples" or by="epochs", got {by!r}')
    if not paths:
        raise ValueError("plot_logs expected at least one log, got none")
    output = Path(output)
    output = output if output.suffix else output.with_suffix(".png")
    logs = [read_log(path) for path in paths]
    curves = [log.minibatches or log.epochs if by == "samples" else log.epochs for log in logs]
    for log, curve in zip(logs, curves):
        if not curve:
            raise ValueError(f"{log.path}: expected lines of finished epochs, found only minibatches; draw by samples")
    tests = [[p for p in log.tests if by == "samples" or p.epochs] for log in logs]
    has_metric = any(p.metric is not None for p in [*sum(curves, []), *sum(tests, [])])
    figure = _figure(2 if has_metric else 1)
    panels = figure.axes
    for log, curve, test in zip(logs, curves, tests):
        colour = _draw(panels[0], curve, by, "loss", log.path)
        if has_metric:
            _draw(panels[1], curve, by, "metric", log.path, color=colour)
            _draw(panels[1], test, by, "metric", f"{log.path} (test)", color=colour, marker="o", linestyle="none")
    panels[0].set_ylabel("loss (mean per sample)")
    if log_scale:
        panels[0].set_yscale("log")
    if has_metric:
        panels[1].set_ylabel("metric (mean per sample)")
    for panel in panels:
        panel.set_xlabel("training samples" if by == "samples" else "epochs")
        panel.grid(alpha=0.3)
        panel.legend()
    figure.savefig(output)
    return output


def _figure(panels: int):
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plot_logs needs matplotlib: pip install matplotlib") from error
    figure = Figure(figsize=(6.4 * panels, 4.8), layout="constrained")  # off screen, whatever backend pyplot has
    figure.subplots(1, panels)
    return figure


def _draw(panel, points: list[Point], by: str, what: str, label: str, **style):
    """One curve; returns its colour. A point without the value is left out."""
    drawn = [(getattr(p, by), getattr(p, what)) for p in points if getattr(p, what) is not None]
    if not drawn:
        return style.get("color")
    if len(drawn) == 1:
        style.setdefault("marker", "o")
    return panel.plot(*zip(*drawn), label=label, **style)[0].get_color()


def _read_csv(lines: list[str], log: Log) -> None:
    if lines[0] != ",".join(COLUMNS):
        raise ValueError(f"{log.path}:1: expected the columns {','.join(COLUMNS)}, got {lines[0]!r}")
    kinds = {"minibatch": log.minibatches, "epoch": log.epochs, "test": log.tests}
    for number, fields in enumerate(csv.reader(lines[1:]), 2):
        try:
            kind, epoch, _, samples, loss, metric, _, _ = fields
            point = Point(int(samples), int(epoch), *(float(value) if value else None for value in (loss, metric)))
        except ValueError:
            raise ValueError(f"{log.path}:{number}: expected a row of {','.join(COLUMNS)}, got {lines[number - 1]!r}") from None
        points = kinds.get(kind)
        if points is None:
            continue
        while points and points[-1].samples > point.samples:
            points.pop()
        points.append(point)


_AVERAGES = r"loss = (?P<loss>\S+) \* (?P<samples>\d+)(?:, metric = (?P<metric>[^\s%]+)(?P<pct>%?) \* \d+)?"
_MINIBATCH = re.compile(rf" Minibatch\[ *(?P<first>\d+)- *\d+\]: {_AVERAGES};")
_EPOCH = re.compile(rf"Finished Epoch\[(?P<epoch>\d+)(?: of \d+)?\]: (?:\[.*\] )?{_AVERAGES} \S+s \( *\S+ samples/s\);")
_TEST = re.compile(r"Finished Evaluation \[\d+\]: Minibatch\[1-\d+\]: metric = (?P<metric>[^\s%]+)(?P<pct>%?) \* \d+;")
_ROW = re.compile(r" [ \d.einfa+-]*\d")


def _read_text(lines: Iterable[str], log: Log) -> None:
    text = _Text(log)
    forms = ((" Minibatch[", _MINIBATCH, text.minibatch), ("Finished Epoch[", _EPOCH, text.epoch),
             ("Finished Evaluation [", _TEST, text.test))
    in_table = False
    for number, line in enumerate(lines, 1):
        in_table = in_table or line == HEADER[2]
        try:
            for start, form, take in forms:
                if line.startswith(start):
                    match = form.fullmatch(line)
                    if match is None:
                        raise ValueError
                    take(match.groupdict())
            if in_table and _ROW.fullmatch(line):  # numbers and blanks only: other lines are messages
                text.row(line)
        except ValueError:
            raise ValueError(f"{log.path}:{number}: expected a line of ProgressPrinter, got {line!r}") from None


class _Text:
    """Reads ProgressPrinter's lines and counts how far training has come, which they say for each epoch anew."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.finished = 0  # samples in whole epochs
        self.within = 0    # samples since
        self.epochs = 0

    def minibatch(self, part: dict[str, str]) -> None:
        if part["first"] == "1":
            self._start_over()
        self.within += int(part["samples"])
        self._append(self.log.minibatches, float(part["loss"]), _fraction(part))

    def row(self, line: str) -> None:
        """A row of the table; columns are 8 wide and 3 apart, and a test's row has no loss."""
        if not line[1:20].strip():
            return
        _, loss, *metrics, samples = line.split()
        if int(samples) <= self.within:
            self._start_over()
        self.within = int(samples)
        if len(metrics) not in (0, 2):
            raise ValueError
        self._append(self.log.minibatches, float(loss), float(metrics[1]) if metrics else None)

    def epoch(self, part: dict[str, str]) -> None:
        self.epochs, self.within = int(part["epoch"]), int(part["samples"])
        self._append(self.log.epochs, float(part["loss"]), _fraction(part))
        self._start_over()

    def test(self, part: dict[str, str]) -> None:
        self._append(self.log.tests, None, _fraction(part))

    def _start_over(self) -> None:
        self.finished += self.within
        self.within = 0

    def _append(self, points: list[Point], loss: float | None, metric: float | None) -> None:
        points.append(Point(self.finished + self.within, self.epochs, loss, metric))


def _fraction(part: dict[str, str]) -> float | None:
    """The metric of a line, a percentage as a fraction."""
    if part["metric"] is None:
        return None
    return float(part["metric"]) / (100 if part["pct"] else 1)
