"""training_session: trains from a minibatch source with progress, checkpoints, cross-validation and a final test."""

from __future__ import annotations

import enum
import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

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

    def __post_init__(self) -> None:
        os.fspath(self.filename)


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

    def __post_init__(self) -> None:
        _check_positive("CrossValidationConfig", "minibatch_size", self.minibatch_size)
        if self.max_samples is not None:
            _check_positive("CrossValidationConfig", "max_samples", self.max_samples)
        if not callable(self.callback or print):
            raise TypeError(f"CrossValidationConfig expected a function as callback, got {self.callback!r}")


@dataclass(frozen=True)
class TestConfig:
    """The test at the end of training, over one sweep of a source."""

    __test__ = False  # pytest takes the name for a test

    minibatch_source: Any
    minibatch_size: int = 32

    def __post_init__(self) -> None:
        _check_positive("TestConfig", "minibatch_size", self.minibatch_size)


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
        TypeError: for a config of another kind.
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
        for name, config, kind in (("checkpoint_config", checkpoint_config, CheckpointConfig),
                                   ("cv_config", cv_config, CrossValidationConfig), ("test_config", test_config, TestConfig)):
            if not isinstance(config, kind | None):
                raise TypeError(f"training_session expected {name} as a {kind.__name__} or None, got {config!r}")
        for source in [mb_source, *(config.minibatch_source for config in (cv_config, test_config) if config)]:
            if not callable(getattr(source, "next_minibatch", None)) or not callable(getattr(source, "state_dict", None)):
                raise TypeError(f"training_session expected sources with next_minibatch and state_dict, got "
                                f"{type(source).__name__}; a data set or arrays go into a minidl.data.MinibatchSource")
        _check_positive("training_session", "mb_size", mb_size)
        for name, value in (("max_epochs", max_epochs), ("max_samples", max_samples)):
            if value is not None:
                _check_positive("training_session", name, value)
        self.trainer, self.source, self.mb_size = trainer, mb_source, mb_size
        self.max_epochs, self.max_samples = max_epochs, max_samples
        self.checkpoint, self.cv, self.test = checkpoint_config, cv_config, test_config
        self.progress_frequency = _frequency("progress_frequency",
                                             (1, DataUnit.sweep) if progress_frequency is None else progress_frequency)
        self.checkpoint_frequency = _frequency("CheckpointConfig.frequency", getattr(checkpoint_config, "frequency", None))
        self.cv_frequency = _frequency("CrossValidationConfig.frequency", getattr(cv_config, "frequency", None))
        self.cv_start = None if cv_config is None else cv_config.minibatch_source.state_dict()
        self.counts = dict.fromkeys(DataUnit, 0)
        self.saved = self.validated = self.summarized = 0  # how often; and after how many minibatches
        self.stopped, self.unsaved = False, True

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
            self.unsaved = True
            before = dict(self.counts)
            self.counts[DataUnit.minibatch] += 1
            self.counts[DataUnit.sample] += self.trainer.previous_minibatch_sample_count
            self.counts[DataUnit.sweep] += _ends_sweep(minibatch)
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
        if self.checkpoint is not None and self.unsaved:
            self._save()
        if self.test is not None:
            self._evaluate(self.test.minibatch_source, self.test.minibatch_size, None)
            self.trainer.summarize_test_progress()

    def _summarize(self) -> None:
        self.summarized, self.unsaved = self.counts[DataUnit.minibatch], True
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
            if _ends_sweep(minibatch):
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
        self.unsaved = False

    def _restore(self) -> None:
        if self.checkpoint is None:
            return
        folder = Path(self.checkpoint.filename).parent
        if not folder.is_dir():  # now, rather than after hours of training
            raise FileNotFoundError(errno.ENOENT, "training_session needs the folder of its checkpoint; make it first",
                                    str(folder))
        if not self.checkpoint.restore:
            return
        found = self._newest()
        if found is None:
            return
        state = self.trainer.restore_from_checkpoint(found)
        if "counts" not in state:
            raise RuntimeError(f"training_session expected a checkpoint of a training session, got {found}, which a Trainer "
                               f"saved by itself; restore it with restore_from_checkpoint, and give the session "
                               f"another filename")
        self.source.load_state_dict(state["source"])
        self.counts = {DataUnit(unit): n for unit, n in state["counts"].items()}
        self.saved, self.validated, self.summarized = state["saved"], state["validated"], state["summarized"]
        self.stopped, self.unsaved = state["stopped"], False

    def _newest(self) -> Path | None:
        assert self.checkpoint is not None
        path = Path(self.checkpoint.filename)
        if not self.checkpoint.preserve_all:
            return path if path.exists() else None
        numbered = [p for p in path.parent.glob(path.name + ".*") if p.name[len(path.name) + 1:].isdigit()]
        return max(numbered, key=lambda p: int(p.name[len(path.name) + 1:]), default=None)


def _ends_sweep(minibatch: Any) -> bool:
    try:
        return bool(minibatch.end_of_sweep)
    except AttributeError:
        raise TypeError(f"training_session expected minibatches with an attribute end_of_sweep, got "
                        f"{type(minibatch).__name__}; make them minidl.data.Minibatch(tensors, end_of_sweep=...)") from None


def _check_positive(who: str, name: str, value: Any) -> None:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{who} expected {name} as a positive integer, got {value!r}")


def _frequency(what: str, value: Any) -> tuple[int, DataUnit] | None:
    if value is None:
        return None
    n, unit = value if isinstance(value, tuple) and len(value) == 2 else (value, DataUnit.sample)
    if not isinstance(n, (int, np.integer)) or isinstance(n, bool) or n < 1 or not isinstance(unit, DataUnit):
        raise ValueError(f"training_session expected {what} as a positive number of samples or (n, DataUnit), got {value!r}")
    return int(n), unit
