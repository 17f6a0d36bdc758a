"""Progress as a bar on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from .progress import ProgressPrinter, Totals, check_count


class ProgressBar(ProgressPrinter):
    """Shows each epoch as a tqdm bar on standard error, and its summary as ProgressPrinter's line.

    Where standard error is not a terminal, or tqdm is not installed, it prints ProgressPrinter's lines there instead.

    Args:
        epoch_size: samples in an epoch, over all ranks; None if not known.
        freq: updates between lines, as ProgressPrinter's, where there is no bar.
        tag, num_epochs, metric_is_pct: as in ProgressPrinter.
        rank: this process's rank, None in a single process; only rank 0 shows anything.
        clock: a function that returns the time in seconds.

    Raises:
        TypeError, ValueError: as ProgressPrinter; epoch_size must be positive.
    """

    def __init__(self, epoch_size: int | None = None, freq: int | None = 100, *, tag: str = "", rank: int | None = None,
                 num_epochs: int | None = None, metric_is_pct: bool = True,
                 clock: Callable[[], float] = time.perf_counter) -> None:
        if epoch_size is not None:
            check_count("ProgressBar", "epoch_size", epoch_size, least=1)
        if freq is not None:
            check_count("ProgressBar", "freq", freq)
        self._epoch_size = epoch_size
        self._bar: Any = None
        self._tqdm = _tqdm() if rank in (None, 0) and sys.stderr.isatty() else None
        super().__init__(freq if self._tqdm is None else 1, tag=tag, rank=rank, num_epochs=num_epochs,
                         metric_is_pct=metric_is_pct, clock=clock)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def on_training_update(self, first_update: int, last_update: int, since_start: Totals, since_last: Totals) -> None:
        if self._tqdm is None:
            super().on_training_update(first_update, last_update, since_start, since_last)
            return
        if self._bar is None:
            self._bar = self._tqdm(desc=f"Epoch {self.training.summaries + 1}", total=self._epoch_size, unit=" samples",
                                   file=sys.stderr, leave=False, dynamic_ncols=True)
        self._bar.set_postfix_str(self._averages(since_start), refresh=False)
        self._bar.update(since_start.samples - self._bar.n)

    def on_training_summary(self, epoch: int, totals: Totals, seconds: float) -> None:
        self.close()
        super().on_training_summary(epoch, totals, seconds)

    def on_message(self, message: str) -> None:
        if self.is_silent:
            return
        if self._bar is None:
            print(message, file=sys.stderr, flush=True)
        else:
            self._bar.write(message, file=sys.stderr)


def _tqdm() -> Any:
    """The class of tqdm's bars, or None if it is not installed."""
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm
