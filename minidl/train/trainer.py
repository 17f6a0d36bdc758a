"""Trainer: one minibatch through forward, backward, update and report, as CNTK's Trainer does it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from ..amp import GradScaler, autocast
from ..autograd.mode import no_grad
from ..tensor.tensor import Tensor
from .checkpoint import Checkpoint
from .progress import ProgressWriter


class Trainer:
    """Trains a model minibatch by minibatch, and keeps count.

    A minibatch is a tuple: the model's inputs, then the target. The model's mode (train, eval) is left as it is; tests are
    run in evaluation mode.

    Args:
        model: a Module.
        criterion: a loss, or (loss, metric). Each is a function of (output, target) that returns its mean over the samples,
            or (mean, number of samples). Without a number, the target's first axis counts the samples.
        learners: an optimizer or several.
        progress_writers: one or several that report.
        scaler: scales the loss, checks the gradients and takes the step, such as minidl.amp.GradScaler.
        use_mixed_precision: run model and criterion under autocast in float16, with a GradScaler unless another scaler is
            given. The environment variable MINIDL_AUTO_MIXED_PRECISION=1 does the same for every Trainer.
        schedulers: learning-rate schedules that are stepped once after every update that was not skipped.

    Attributes:
        previous_minibatch_loss_average, previous_minibatch_evaluation_average, previous_minibatch_sample_count: of the last
            call of train_minibatch; the evaluation is NaN without a metric.
        previous_step_skipped: whether the scaler skipped that step.
        total_number_of_samples_seen: since training began, restored runs included.

    Source: CNTK's Trainer.
    """

    def __init__(self, model: Any, criterion: Any, learners: Any, progress_writers: Any = None, *, scaler: Any = None,
                 use_mixed_precision: bool = False, schedulers: Any = None):
        mixed = use_mixed_precision or _asked_for_by_environment()
        if not callable(getattr(model, "modules", None)):
            raise TypeError(f"Trainer expected a Module as model, got {model!r}")
        self.model = model
        self.loss, self.metric = _criteria(criterion)
        self.learners = _several("learners", learners, "step", "zero_grad")
        if not self.learners:
            raise ValueError("Trainer expected at least one learner, got none")
        self.progress_writers: list[ProgressWriter] = _several("progress_writers", progress_writers, "update_training")
        self.schedulers = _several("schedulers", schedulers, "step")
        self.scaler = GradScaler() if mixed and scaler is None else scaler
        self.autocast = autocast() if mixed else nullcontext()
        self.previous_minibatch_loss_average = self.previous_minibatch_evaluation_average = float("nan")
        self.previous_minibatch_sample_count = self.total_number_of_samples_seen = 0
        self.previous_step_skipped = False

    def train_minibatch(self, minibatch: Any) -> bool:
        """Update the model with a minibatch; returns False when there is none because the data has ended.

        Args:
            minibatch: a tuple of inputs and, last, the target; None or an empty tuple at the end of the data.

        Raises:
            TypeError, ValueError: if it is no such tuple, or the criterion returns no mean.
        """
        if minibatch is None or (isinstance(minibatch, tuple) and not minibatch):
            return False
        inputs, target = _split(minibatch)
        self.previous_step_skipped = False
        if getattr(minibatch, "sample_count", None) == 0:  # this rank's share of a short minibatch
            self.previous_minibatch_sample_count = 0
            return True
        for learner in self.learners:
            learner.zero_grad()
        with self.autocast:
            output = self.model(*inputs)
            loss, samples = _mean("loss", self.loss(output, target), target)
            metric = self._metric(output, target, samples)
        (loss if self.scaler is None else self.scaler.scale(loss)).backward()
        self._step()
        self._report(samples, loss.item(), metric)
        return True

    def _step(self) -> None:
        if self.scaler is None:
            for learner in self.learners:
                learner.step()
        else:
            taken = [self.scaler.step(learner) for learner in self.learners]
            self.scaler.update()
            self.previous_step_skipped = not any(taken)
        if not self.previous_step_skipped:
            for scheduler in self.schedulers:
                scheduler.step()

    def _metric(self, output: Any, target: Any, samples: int) -> float | None:
        if self.metric is None:
            return None
        with no_grad():
            metric, counted = _mean("metric", self.metric(output, target), target, samples)
        if counted != samples:
            raise ValueError(f"Trainer expected loss and metric over the same samples, got {samples} and {counted}; return the "
                             f"same count from both")
        return float(metric)

    def _report(self, samples: int, loss: float, metric: float | None) -> None:
        self.previous_minibatch_loss_average = loss
        self.previous_minibatch_evaluation_average = float("nan") if metric is None else metric
        self.previous_minibatch_sample_count = samples
        self.total_number_of_samples_seen += samples
        for writer in self.progress_writers:
            writer.update_training(samples, loss * samples, None if metric is None else metric * samples)

    def test_minibatch(self, minibatch: Any) -> float:
        """The metric (the loss, where there is none) of a minibatch, averaged over its samples, in evaluation mode."""
        return self._test(minibatch)[0]

    def _test(self, minibatch: Any) -> tuple[float, int]:
        inputs, target = _split(minibatch)
        with evaluating(self.model), no_grad(), self.autocast:
            output = self.model(*inputs)
            value, samples = _mean("metric", (self.metric or self.loss)(output, target), target)
        average = float(value)
        for writer in self.progress_writers:
            writer.update_test(samples, average * samples)
        return average, samples

    def summarize_training_progress(self) -> None:
        """Let the progress writers report the epoch that ends here."""
        for writer in self.progress_writers:
            writer.write_training_summary()

    def summarize_test_progress(self) -> None:
        """Let the progress writers report the test that ends here."""
        for writer in self.progress_writers:
            writer.write_test_summary()

    # Checkpoints

    def save_checkpoint(self, filename: Any, external_state: dict | None = None) -> None:
        """Write model, learners, schedulers, scaler, progress, counts and random streams to a file, atomically.

        Args:
            external_state: what restore_from_checkpoint shall return, such as the state of the data source.
        """
        self._checkpoint().save(filename, external_state=external_state or {})

    def restore_from_checkpoint(self, filename: Any) -> dict:
        """Go on from a file of save_checkpoint; returns its external_state.

        The trainer may have other progress writers than the one that was saved; new ones count on from the run's progress.
        """
        return self._checkpoint().restore(filename)["external_state"]

    def _checkpoint(self) -> Checkpoint:
        parts = {"model": self.model, "scaler": self.scaler, "progress": _Progress(self)}
        for name, several in (("learner", self.learners), ("scheduler", self.schedulers)):
            parts.update({f"{name}{i}": part for i, part in enumerate(several)})
        return Checkpoint(**parts)


class _Progress:
    """How far a trainer and its progress writers have come, as a part of its checkpoint."""

    def __init__(self, trainer: Trainer):
        self.trainer = trainer

    def state_dict(self) -> dict[str, Any]:
        return {"samples": self.trainer.total_number_of_samples_seen,
                "writers": [writer.state_dict() for writer in self.trainer.progress_writers]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.trainer.total_number_of_samples_seen = state["samples"]
        states = state["writers"]
        for i, writer in enumerate(self.trainer.progress_writers if states else ()):
            writer.load_state_dict(states[min(i, len(states) - 1)])


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """Evaluation mode inside the block; afterwards each module is in the mode in which it was."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


def _asked_for_by_environment() -> bool:
    value = os.environ.get("MINIDL_AUTO_MIXED_PRECISION", "0")
    if value not in ("", "0", "1"):
        raise ValueError(f"the environment variable MINIDL_AUTO_MIXED_PRECISION was expected to be 0 or 1, got {value!r}")
    return value == "1"


def _criteria(criterion: Any) -> tuple[Callable, Callable | None]:
    parts = tuple(criterion) if isinstance(criterion, (tuple, list)) else (criterion, None)
    if len(parts) != 2 or not callable(parts[0]) or not (parts[1] is None or callable(parts[1])):
        raise TypeError(f"Trainer expected a loss function or a pair (loss, metric) as criterion, got {criterion!r}")
    return parts  # type: ignore[return-value]


def _several(what: str, value: Any, *methods: str) -> list:
    parts = [] if value is None else list(value) if isinstance(value, Sequence) else [value]
    for part in parts:
        for method in methods:
            if not callable(getattr(part, method, None)):
                raise TypeError(f"Trainer expected {what} with a method {method}, got {type(part).__name__}")
    return parts


def _split(minibatch: Any) -> tuple[tuple, Any]:
    if not isinstance(minibatch, (tuple, list)) or len(minibatch) < 2:
        raise TypeError(f"Trainer expected a minibatch (input, ..., target), got {type(minibatch).__name__}"
                        + (f" of length {len(minibatch)}" if isinstance(minibatch, (tuple, list)) else ""))
    return tuple(minibatch[:-1]), minibatch[-1]


def _mean(what: str, result: Any, target: Any, samples: int | None = None) -> tuple[Any, int]:
    """(mean, number of samples) of what a criterion returned."""
    value, samples = result if isinstance(result, tuple) else (result, samples)
    if not isinstance(value, Tensor) and (what == "loss" or not hasattr(value, "__float__")):
        raise TypeError(f"Trainer expected the criterion to return the mean of the {what} as a tensor, got {value!r}")
    if getattr(value, "ndim", 0):
        raise ValueError(f"Trainer expected the mean of the {what} over the samples, got a tensor of shape {value.shape}; use "
                         f"reduction='mean'")
    if samples is None:
        if not getattr(target, "shape", ()):
            raise ValueError(f"Trainer cannot count the samples of a target of type {type(target).__name__}; let the {what} "
                             f"return (mean, number of samples)")
        samples = target.shape[0]
    return value, int(samples)
