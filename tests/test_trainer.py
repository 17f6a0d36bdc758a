"""Trainer: counting, reporting, skipping, testing, checkpoints, bad criteria."""

from __future__ import annotations

import math

import numpy as np
import pytest

import minidl
import minidl.nn.functional as F
from minidl import nn
from minidl.amp import GradScaler
from minidl.data.source import Minibatch
from minidl.nn.module import Module
from minidl.nn.parameter import Parameter
from minidl.optim import SGD
from minidl.train.checkpoint import Checkpoint
from minidl.train.progress import ProgressWriter
from minidl.train.trainer import Trainer


class Line(Module):
    """y = w * x, which notes its mode at each call."""

    def __init__(self):
        super().__init__()
        self.w = Parameter(minidl.zeros(()))
        self.modes = []

    def forward(self, x):
        self.modes.append(self.training)
        return x * self.w


class Recorder(ProgressWriter):
    def __init__(self):
        super().__init__()
        self.seen = []

    def update_training(self, samples, loss, metric=None):
        self.seen.append((samples, loss, metric))

    def update_test(self, samples, metric):
        self.seen.append(("test", samples, metric))


def batch(n=4):
    x = minidl.arange(1, n + 1).float()
    return x, 2 * x


def error(output, target):
    return ((output - target).abs() > 0.5).float().mean()


def make(**options):
    model = Line()
    return Trainer(model, options.pop("criterion", (F.mse_loss, error)), SGD(model.parameters(), lr=0.01), **options)


def test_a_minibatch_updates_counts_and_reports_sums():
    recorder = Recorder()
    trainer = make(progress_writers=recorder)
    assert trainer.train_minibatch(batch())
    loss = np.mean((2 * np.arange(1, 5)) ** 2)
    assert trainer.previous_minibatch_loss_average == loss and trainer.previous_minibatch_evaluation_average == 1
    assert trainer.previous_minibatch_sample_count == 4 and recorder.seen == [(4, 4 * loss, 4.0)]
    assert trainer.train_minibatch(batch(2)) and trainer.total_number_of_samples_seen == 6
    assert trainer.model.w.item() > 0 and not trainer.previous_step_skipped


@pytest.mark.parametrize("end", [None, ()])
def test_the_end_of_the_data_is_false(end):
    trainer = make()
    assert trainer.train_minibatch(end) is False and trainer.total_number_of_samples_seen == 0


def test_an_empty_share_of_a_minibatch_is_no_end():
    trainer = make()
    assert trainer.train_minibatch(Minibatch((minidl.zeros(0), minidl.zeros(0)), ("x", "y")))
    assert trainer.previous_minibatch_sample_count == 0 and trainer.model.w.grad is None


def test_without_a_metric_the_evaluation_is_nan():
    trainer = make(criterion=F.mse_loss)
    trainer.train_minibatch(batch())
    assert math.isnan(trainer.previous_minibatch_evaluation_average)
    assert trainer.test_minibatch(batch()) == pytest.approx(F.mse_loss(trainer.model(batch()[0]), batch()[1]).item())


def test_a_criterion_may_count_samples_itself():
    recorder = Recorder()
    trainer = make(criterion=lambda output, target: (F.mse_loss(output, target), 7), progress_writers=[recorder])
    trainer.train_minibatch(batch())
    assert trainer.total_number_of_samples_seen == 7 and recorder.seen[0][0] == 7


def test_testing_is_in_evaluation_mode_changes_nothing_and_restores_modes():
    recorder = Recorder()
    trainer = make(progress_writers=recorder)
    assert trainer.test_minibatch(batch()) == 1.0 and recorder.seen == [("test", 4, 4.0)]
    assert trainer.model.modes == [False] and trainer.model.training and trainer.model.w.grad is None
    assert trainer.total_number_of_samples_seen == 0


class SkipFirst:
    """A scaler that skips the first step."""

    def __init__(self):
        self.steps = self.updates = 0

    def scale(self, loss):
        return loss * 2

    def step(self, learner):
        self.steps += 1
        if self.steps > 1:
            learner.step()
        return self.steps > 1

    def update(self):
        self.updates += 1


def test_a_skipped_step_is_true_seen_and_leaves_schedules_alone():
    ticks = []

    class Schedule:
        def step(self):
            ticks.append(1)

    trainer = make(scaler=SkipFirst(), schedulers=[Schedule()])
    assert trainer.train_minibatch(batch()) and trainer.previous_step_skipped and trainer.model.w.item() == 0 and not ticks
    assert trainer.train_minibatch(batch()) and not trainer.previous_step_skipped and trainer.model.w.item() > 0
    assert trainer.scaler.updates == 2 and ticks == [1]


def test_mixed_precision_runs_the_model_in_half_and_scales_the_loss():
    seen = []
    for kind in (dict(use_mixed_precision=True), dict(use_mixed_precision=True, scaler=GradScaler(init_scale=8.0)), {}):
        model = nn.Linear(1, 1)
        trainer = Trainer(model, lambda o, t: (seen.append(o.dtype), F.mse_loss(o, t))[1],
                          SGD(model.parameters(), lr=0.01), **kind)
        x = minidl.ones(4, 1)
        assert trainer.train_minibatch((x, 2 * x)) and model.weight.dtype == minidl.float32
        trainer.test_minibatch((x, x))
    assert seen == [minidl.float16] * 4 + [minidl.float32] * 2


def test_an_overflow_is_a_skipped_step_and_training_goes_on():
    model = nn.Linear(1, 1)
    trainer = Trainer(model, F.mse_loss, SGD(model.parameters(), lr=0.01), scaler=GradScaler(init_scale=16.0),
                      use_mixed_precision=True)
    x, y = minidl.ones(4, 1), minidl.ones(4, 1)
    before = model.weight.tolist()
    assert trainer.train_minibatch((x * 1e30, y)) and trainer.previous_step_skipped and model.weight.tolist() == before
    scale = trainer.scaler.get_scale()
    assert trainer.train_minibatch((x, y)) and not trainer.previous_step_skipped and scale == 8


def test_the_environment_switches_mixed_precision_on(monkeypatch):
    monkeypatch.setenv("MINIDL_AUTO_MIXED_PRECISION", "1")
    assert isinstance(make().scaler, GradScaler)
    monkeypatch.setenv("MINIDL_AUTO_MIXED_PRECISION", "yes")
    with pytest.raises(ValueError, match="MINIDL_AUTO_MIXED_PRECISION"):
        make()


@pytest.mark.parametrize("change, kind, message", [
    (dict(criterion=3), TypeError, "loss function or a pair"),
    (dict(criterion=(F.mse_loss, error, error)), TypeError, "pair"),
    (dict(progress_writers=3), TypeError, "progress_writers with a method update_training, got int"),
])
def test_bad_arguments(change, kind, message):
    with pytest.raises(kind, match=message):
        make(**change)


def test_learners_are_checked():
    with pytest.raises(TypeError, match="learners with a method step, got str"):
        Trainer(Line(), F.mse_loss, ["sgd"])
    with pytest.raises(ValueError, match="at least one learner"):
        Trainer(Line(), F.mse_loss, [])


def test_the_model_is_a_module():
    with pytest.raises(TypeError, match="a Module as model, got None"):
        Trainer(None, F.mse_loss, SGD(Line().parameters(), lr=0.1))


@pytest.mark.parametrize("criterion, what", [(lambda o, t: 3.0, "loss"), (lambda o, t: None, "loss"),
                                             ((F.mse_loss, lambda o, t: None), "metric")])
def test_a_criterion_that_returns_no_tensor_is_refused_before_the_update(criterion, what):
    trainer = make(criterion=criterion)
    with pytest.raises(TypeError, match=f"mean of the {what} as a tensor"):
        trainer.train_minibatch(batch())
    assert trainer.model.w.item() == 0


@pytest.mark.parametrize("minibatch, message", [(minidl.ones(3), "got Tensor"), ((minidl.ones(3),), "of length 1")])
def test_what_is_no_minibatch_is_refused(minibatch, message):
    with pytest.raises(TypeError, match=message):
        make().train_minibatch(minibatch)


@pytest.mark.parametrize("criterion, message", [
    (lambda o, t: (o - t) ** 2, r"mean of the loss over the samples, got a tensor of shape \(4,\)"),
    ((F.mse_loss, lambda o, t: (error(o, t), 3)), "4 and 3"),
])
def test_a_criterion_that_gives_no_mean_is_refused(criterion, message):
    with pytest.raises(ValueError, match=message):
        make(criterion=criterion).train_minibatch(batch())


def test_checkpoints_resume_bit_equal(tmp_path):
    one = make()
    for _ in range(3):
        one.train_minibatch(batch())
    one.save_checkpoint(tmp_path / "c", {"position": 3})
    two = make()
    assert two.restore_from_checkpoint(tmp_path / "c") == {"position": 3}
    assert two.total_number_of_samples_seen == 12
    for trainer in (one, two):
        trainer.train_minibatch(batch())
    assert one.model.w.item() == two.model.w.item()


@pytest.mark.parametrize("before, after", [(1, 2), (2, 1), (0, 1), (1, 0)])
def test_a_run_goes_on_with_other_progress_writers(tmp_path, before, after):
    one = make(progress_writers=[ProgressWriter() for _ in range(before)])
    one.train_minibatch(batch())
    one.summarize_training_progress()
    one.save_checkpoint(tmp_path / "c")
    two = make(progress_writers=[ProgressWriter() for _ in range(after)])
    two.restore_from_checkpoint(tmp_path / "c")
    assert two.total_number_of_samples_seen == 4
    assert [writer.training.summaries for writer in two.progress_writers] == [min(before, 1)] * after


def test_a_checkpoint_of_other_things_is_refused(tmp_path):
    one = make()
    Checkpoint(model=one.model, learner0=one.learners[0]).save(tmp_path / "c")
    with pytest.raises(RuntimeError, match="missing progress"):
        one.restore_from_checkpoint(tmp_path / "c")
