"""Progress as event files that TensorBoard reads, through the tensorboard package's own writer."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from .progress import ProgressWriter, Totals


class TensorBoardProgressWriter(ProgressWriter):
    """Writes scalars for TensorBoard: minibatch/avg_loss and minibatch/avg_metric against training updates, summary/avg_loss
    and summary/avg_metric against epochs, minibatch/test_avg_metric against training updates (summary/test_avg_metric
    against evaluations where there is no training), and numbers of your own against training updates.

    Args:
        freq: training updates between reports; 0 at 1, 3, 7, ...; None only summaries.
        log_dir: the folder of the event file; made if missing.
        rank: this process's rank, None in a single process; only rank 0 makes a file.
        model: a Module whose tree of modules is shown in the Graphs tab.
        clock: a function that returns the time in seconds.

    Raises:
        ImportError: if tensorboard is not installed.
        OSError: if the event file cannot be made.
        RuntimeError: on writing after close().

    Source: CNTK 2, cntk.logging.TensorBoardProgressWriter.
    """

    def __init__(self, freq: int | None = None, log_dir: str | os.PathLike = ".", rank: int | None = None, model: Any = None,
                 *, clock: Callable[[], float] = time.perf_counter) -> None:
        super().__init__(freq, rank=rank, clock=clock)
        self._closed = False
        if self.is_silent:
            return
        self._tensorboard = _tensorboard()
        self._writer = self._tensorboard.EventFileWriter(os.fspath(log_dir))
        # The package writes from a daemon thread, which ends with the process whatever is still in its queue.
        self._finish = weakref.finalize(self, self._writer.close)
        if model is not None:
            self._add(graph_def=self._tensorboard.GraphDef(node=self._nodes(model)).SerializeToString())

    def write_value(self, name: str, value: float, step: int) -> None:
        """Record one scalar at a step."""
        self._check_open()
        if not self.is_silent:
            scalar = self._tensorboard.Summary.Value(tag=name, simple_value=float(value))
            self._add(step=int(step), summary=self._tensorboard.Summary(value=[scalar]))

    def flush(self) -> None:
        """Bring everything recorded so far to disk."""
        self._check_open()
        if not self.is_silent:
            self._writer.flush()

    def close(self) -> None:
        """Bring everything to disk and close the file; may be called more than once."""
        self._closed = True
        if not self.is_silent:
            self._finish()

    def on_training_update(self, first_update: int, last_update: int, since_start: Totals, since_last: Totals) -> None:
        self._averages("minibatch/avg_", since_last, self.training.total_updates)

    def on_training_summary(self, epoch: int, totals: Totals, seconds: float) -> None:
        self._averages("summary/avg_", totals, epoch)
        self.flush()

    def on_test_summary(self, number: int, totals: Totals, seconds: float) -> None:
        updates = self.training.total_updates
        self._averages("minibatch/test_avg_" if updates else "summary/test_avg_", totals, updates or number)
        self.flush()

    def on_value(self, name: str, value: float) -> None:
        self.write_value(name, value, self.training.total_updates)

    def _averages(self, prefix: str, totals: Totals, step: int) -> None:
        for name, value in (("loss", totals.loss), ("metric", totals.metric)):
            if value is not None:
                self.write_value(prefix + name, value, step)

    def _add(self, **content: Any) -> None:
        self._writer.add_event(self._tensorboard.Event(wall_time=time.time(), **content))

    def _nodes(self, model: Any) -> list[Any]:
        """A node for each module without submodules; TensorBoard makes the boxes around them from the slashes."""
        modules = list(model.named_modules())
        parents = {name.rpartition(".")[0] for name, _ in modules if name}
        root = type(model).__name__
        return [self._tensorboard.NodeDef(name="/".join([root, *name.split(".")] if name else [root]), op=type(module).__name__)
                for name, module in modules if name not in parents]

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("TensorBoardProgressWriter expected to be open, but close() was called; make a new one")


def _tensorboard() -> SimpleNamespace:
    """What is used of the tensorboard package."""
    try:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.graph_pb2 import GraphDef
        from tensorboard.compat.proto.node_def_pb2 import NodeDef
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
    except ImportError as error:
        raise ImportError("TensorBoardProgressWriter needs the tensorboard package: "
                          "pip install 'minidl[tensorboard]'") from error
    return SimpleNamespace(Event=Event, GraphDef=GraphDef, NodeDef=NodeDef, Summary=Summary, EventFileWriter=EventFileWriter)
