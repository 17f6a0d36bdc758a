"""training_session: trains from a minibatch source with progress, checkpoints, cross-validation and a final test."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .trainer import Trainer


class DataUnit(enum.Enum):
    """What a frequency counts."""

    sample = "sample"
    minibatch = "minibatch"
    sweep = "sweep"


@dataclass(frozen=True)
class CheckpointConfig:
    """When to save, and whether to go on from what is there.

    Args:
        filename: of the checkpoint.
        frequency: in samples, or (n, DataUnit); None saves at the end only.
        restore: go on from the newest checkpoint, where there is one.
        preserve_all: keep every checkpoint, as filename with a number, rather than the newest.
    """

    filename: Any
    frequency: Any = None
    restore: bool = True
    preserve_all: bool = False


@dataclass(frozen=True)
class CrossValidationConfig:
    """When to test during training.

    Args:
        minibatch_source: read from its present position for one sweep, each time anew.
        frequency: in samples, or (n, DataUnit); None tests at the end only.
        minibatch_size: samples at a time.
        callback: called with (number of the test, average metric, samples, minibatches); False ends the training.
        max_samples: of a test.
    """

    minibatch_source: Any
    frequency: Any = None
    minibatch_size: int = 32
    callback: Callable[[int, float, int, int], bool | None] | None = None
    max_samples: int | None = None


@dataclass(frozen=True)
class TestConfig:
    """The test at the end of training, over one sweep of a source."""

    __test__ = False  # pytest takes the name for a test

    minibatch_source: Any
    minibatch_size: int = 32


def training_session(trainer: Trainer, mb_source: Any, mb_size: int, *, max_epochs: int | None = None,
                     max_samples: int | None = None, progress_frequency: Any = None,
                     checkpoint_config: CheckpointConfig | None = None, cv_config: CrossValidationConfig | None = None,
                     test_config: TestConfig | None = None) -> TrainingSession:
    """A training run over a source; call train() on it.

    Args:
        mb_source: has next_minibatch(samples, num_shards, shard) and state dicts, such as minidl.data.MinibatchSource.
        mb_size: samples a minibatch.
        max_epochs: end after this many sweeps.
        max_samples: end after this many samples; without either, the run ends when the source does.
        progress_frequency: how often the progress writers get an end of an epoch, in samples or (n, DataUnit); default every
            sweep.

    Raises:
        ValueError: for sizes and frequencies that are not positive.

    Source: CNTK's training_session.
    """
    return TrainingSession(trainer, mb_source, mb_size, max_epochs, max_samples, progress_frequency, checkpoint_config,
                           cv_config, test_config)


class TrainingSession:
    """A training run; see training_session."""

    def __init__(self, trainer: Trainer, mb_source: Any, mb_size: int, max_epochs: int | None, max_samples: int | None,
                 progress_frequency: Any, checkpoint_config: CheckpointConfig | None, cv_config: CrossValidationConfig | None,
                 test_config: TestConfig | None):
        for name, value in (("mb_size", mb_size), ("max_epochs", max_epochs), ("max_samples", max_samples)):
            if value is not None and (type(value) is not int or value < 1):
                raise ValueError(f"training_session expected {name} as a positive integer, got {value!r}")
        if mb_size is None:
            raise ValueError("training_session expected mb_size as a positive integer, got None")
        self.trainer, self.source, self.mb_size = trainer, mb_source, mb_size
        self.max_epochs, self.max_samples = max_epochs, max_samples
        self.checkpoint, self.cv, self.test = checkpoint_config, cv_config, test_config
        self.progress_frequency = _frequency("progress_frequency", progress_frequency or (1, DataUnit.sweep))
        self.checkpoint_frequency = _frequency("CheckpointConfig.frequency", getattr(checkpoint_config, "frequency", None))
        self.cv_frequency = _frequency("CrossValidationConfig.frequency", getattr(cv_config, "frequency", None))
        self.cv_start = None if cv_config is None else cv_config.minibatch_source.state_dict()
        self.counts = dict.fromkeys(DataUnit, 0)
        self.saved = self.validated = self.summarized = 0  # how often; and after how many minibatches
        self.stopped = False

    def train(self) -> None:
        """Train to the end, or from the last checkpoint to the end."""
        self._restore()
        while not self._has_ended():
            size = self.mb_size
            if self.max_samples is not None:
                size = min(size, self.max_samples - self.counts[DataUnit.sample])
            minibatch = self.source.next_minibatch(size, 1, 0)
            if not self.trainer.train_minibatch(minibatch):
                break
            before = dict(self.counts)
            self.counts[DataUnit.minibatch] += 1
            self.counts[DataUnit.sample] += self.trainer.previous_minibatch_sample_count
            self.counts[DataUnit.sweep] += bool(minibatch.end_of_sweep)
            self._act(before)
        self._finish()

    def _has_ended(self) -> bool:
        return (self.stopped or (self.max_epochs is not None and self.counts[DataUnit.sweep] >= self.max_epochs)
                or (self.max_samples is not None and self.counts[DataUnit.sample] >= self.max_samples))

    def _act(self, before: dict) -> None:
        """Do what is due; the checkpoint last, so that it holds all the rest as done."""
        if self._is_due(self.progress_frequency, before):
            self._summarize()
        if self.cv is not None and self._is_due(self.cv_frequency, before):
            self._validate()
        if self.checkpoint is not None and self._is_due(self.checkpoint_frequency, before):
            self._save()

    def _is_due(self, frequency: tuple | None, before: dict) -> bool:
        if frequency is None:
            return False
        n, unit = frequency
        return before[unit] // n < self.counts[unit] // n

    def _finish(self) -> None:
        if self.counts[DataUnit.minibatch] > self.summarized:
            self._summarize()
        if self.cv is not None and self.cv_frequency is None:
            self._validate()
        if self.checkpoint is not None:
            self._save()
        if self.test is not None:
            self._evaluate(self.test.minibatch_source, self.test.minibatch_size, None)
            self.trainer.summarize_test_progress()

    def _summarize(self) -> None:
        self.summarized = self.counts[DataUnit.minibatch]
        self.trainer.summarize_training_progress()

    def _validate(self) -> None:
        assert self.cv is not None
        self.cv.minibatch_source.load_state_dict(self.cv_start)
        average, samples, minibatches = self._evaluate(self.cv.minibatch_source, self.cv.minibatch_size, self.cv.max_samples)
        self.trainer.summarize_test_progress()
        go_on = None if self.cv.callback is None else self.cv.callback(self.validated, average, samples, minibatches)
        self.validated += 1
        self.stopped = go_on is False

    def _evaluate(self, source: Any, size: int, max_samples: int | None) -> tuple[float, int, int]:
        """(average metric, samples, minibatches) of one sweep of a source, or the part of it that max_samples allows."""
        total, samples, minibatches = 0.0, 0, 0
        while max_samples is None or samples < max_samples:
            minibatch = source.next_minibatch(size if max_samples is None else min(size, max_samples - samples), 1, 0)
            if not minibatch:
                break
            average, count = self.trainer._test(minibatch)
            total, samples, minibatches = total + average * count, samples + count, minibatches + 1
            if minibatch.end_of_sweep:
                break
        return (total / samples if samples else float("nan")), samples, minibatches

    # Checkpoints

    def _save(self) -> None:
        assert self.checkpoint is not None
        self.saved += 1
        state = {"source": self.source.state_dict(), "counts": {unit.value: n for unit, n in self.counts.items()},
                 "saved": self.saved, "validated": self.validated, "summarized": self.summarized, "stopped": self.stopped}
        name = self.checkpoint.filename
        self.trainer.save_checkpoint(f"{name}.{self.saved}" if self.checkpoint.preserve_all else name, state)

    def _restore(self) -> None:
        if self.checkpoint is None or not self.checkpoint.restore:
            return
        found = self._newest()
        if found is None:
            return
        state = self.trainer.restore_from_checkpoint(found)
        self.source.load_state_dict(state["source"])
        self.counts = {DataUnit(unit): n for unit, n in state["counts"].items()}
        self.saved, self.validated, self.summarized = state["saved"], state["validated"], state["summarized"]
        self.stopped = state["stopped"]

    def _newest(self) -> Path | None:
        assert self.checkpoint is not None
        path = Path(self.checkpoint.filename)
        if not self.checkpoint.preserve_all:
            return path if path.exists() else None
        numbered = [p for p in path.parent.glob(path.name + ".*") if p.name[len(path.name) + 1:].isdigit()]
        return max(numbered, key=lambda p: int(p.name[len(path.name) + 1:]), default=None)


def _frequency(what: str, value: Any) -> tuple[int, DataUnit] | None:
    if value is None:
        return None
    n, unit = value if isinstance(value, tuple) and len(value) == 2 else (value, DataUnit.sample)
    if type(n) is not int or n < 1 or not isinstance(unit, DataUnit):
        raise ValueError(f"training_session expected {what} as a positive number of samples or (n, DataUnit), got {value!r}")
    return n, unit
