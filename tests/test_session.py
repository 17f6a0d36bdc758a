"""training_session: ends, frequencies, cross-validation, checkpoints, restart."""

from __future__ import annotations

import io
from contextlib import redirect_stdout

import numpy as np
import pytest

import minidl
import minidl.nn.functional as F
from minidl.data.dataset import TensorDataset
from minidl.data.source import MinibatchSource
from minidl.nn.module import Module
from minidl.nn.parameter import Parameter
from minidl.optim import SGD
from minidl.train.progress import ProgressPrinter
from minidl.train.session import CheckpointConfig, CrossValidationConfig, DataUnit, TestConfig, training_session
from minidl.train.trainer import Trainer

X = np.random.RandomState(0).randn(20, 3).astype(np.float32)
Y = X @ np.float32([1, -2, 3])


class Linear(Module):
    def __init__(self):
        super().__init__()
        self.weight = Parameter(minidl.zeros(3))

    def forward(self, x):
        return x @ self.weight


def source(**options):
    return MinibatchSource((X, Y), **options)


def make(writers=None):
    model = Linear()
    return Trainer(model, (F.mse_loss, lambda o, t: (o - t).abs().mean()), SGD(model.parameters(), lr=0.1, momentum=0.5),
                   writers)


def run(trainer, *, data=None, size=8, **options):
    session = training_session(trainer, data or source(), size, **options)
    session.train()
    return session


@pytest.mark.parametrize("options, samples, minibatches", [
    (dict(max_epochs=2), 40, 6), (dict(max_samples=30), 30, 5), (dict(max_epochs=1, max_samples=1000), 20, 3),
])
def test_where_a_run_ends(options, samples, minibatches):
    trainer = make()
    session = run(trainer, **options)
    assert trainer.total_number_of_samples_seen == samples == session.counts[DataUnit.sample]
    assert session.counts[DataUnit.minibatch] == minibatches


def test_a_run_without_limits_ends_with_its_source():
    trainer = make()
    run(trainer, data=source(max_sweeps=3))
    assert trainer.total_number_of_samples_seen == 60


@pytest.mark.parametrize("frequency, epochs", [(None, 2), ((2, DataUnit.minibatch), 3), (20, 2), ((1, DataUnit.sweep), 2),
                                               (1000, 1)])
def test_progress_frequency(frequency, epochs):
    out = io.StringIO()
    with redirect_stdout(out):
        run(make(ProgressPrinter()), max_epochs=2, progress_frequency=frequency)
    assert out.getvalue().count("Finished Epoch") == epochs


def test_cross_validation_sees_the_same_data_each_time_and_may_stop():
    seen = []

    def callback(*args):
        seen.append(args)
        return len(seen) < 2

    trainer = make()
    run(trainer, max_epochs=5, cv_config=CrossValidationConfig(source(), (1, DataUnit.sweep), 16, callback))
    assert [s[0] for s in seen] == [0, 1] and all(s[2:] == (20, 2) for s in seen) and seen[1][1] < seen[0][1]
    assert trainer.total_number_of_samples_seen == 40
    run(trainer, max_epochs=1, cv_config=CrossValidationConfig(source(), None, 16, callback, max_samples=10))
    assert len(seen) == 3 and seen[2][2] == 10


def test_a_test_at_the_end():
    out = io.StringIO()
    with redirect_stdout(out):
        run(make(ProgressPrinter(metric_is_pct=False)), max_epochs=1, test_config=TestConfig(source(), 10))
    assert "Finished Evaluation [1]: Minibatch[1-2]" in out.getvalue() and "* 20" in out.getvalue()


class Dying(MinibatchSource):
    """Raises when asked for one minibatch more than it has lives."""

    lives = 1000

    def next_minibatch(self, *args, **kwargs):
        self.lives -= 1
        if self.lives < 0:
            raise KeyboardInterrupt
        return super().next_minibatch(*args, **kwargs)


@pytest.mark.parametrize("preserve_all", [False, True])
@pytest.mark.parametrize("lives", [0, 1, 3, 6, 8])
def test_a_killed_run_that_is_started_again_ends_bit_equal_and_prints_the_same_lines(tmp_path, lives, preserve_all):
    def training(name, lives):
        (tmp_path / name).mkdir(exist_ok=True)
        data = Dying((X, Y))
        data.lives = lives
        trainer = make(ProgressPrinter(freq=2, clock=lambda: 0.0))
        out = io.StringIO()
        try:
            with redirect_stdout(out):
                run(trainer, data=data, max_epochs=3, cv_config=CrossValidationConfig(source(), 16),
                    checkpoint_config=CheckpointConfig(tmp_path / name / "run", 16, preserve_all=preserve_all))
        except KeyboardInterrupt:
            pass
        return trainer, out.getvalue().splitlines()

    whole, lines = training("whole", 1000)
    _, before = training("killed", lives)
    again, after = training("killed", 1000)
    assert again.model.weight.tolist() == whole.model.weight.tolist() and again.total_number_of_samples_seen == 60
    assert after == lines[len(lines) - len(after):] and len(before) + len(after) >= len(lines)
    assert sorted(p.name for p in (tmp_path / "whole").iterdir()) == sorted(p.name for p in (tmp_path / "killed").iterdir())


def test_a_finished_run_that_is_started_again_does_nothing_more(tmp_path):
    config = CheckpointConfig(tmp_path / "run")
    one, two = make(), make()
    run(one, max_epochs=2, checkpoint_config=config)
    run(two, max_epochs=2, checkpoint_config=config)
    assert two.model.weight.tolist() == one.model.weight.tolist() and two.total_number_of_samples_seen == 40
    three = make()
    run(three, max_epochs=1, checkpoint_config=CheckpointConfig(tmp_path / "run", restore=False))
    assert three.total_number_of_samples_seen == 20


@pytest.mark.parametrize("frequency", [None, 8, (1, DataUnit.sweep)])
def test_a_finished_run_that_is_started_again_leaves_its_numbered_checkpoints_alone(tmp_path, frequency):
    config = CheckpointConfig(tmp_path / "run", frequency, preserve_all=True)
    run(make(), max_epochs=2, checkpoint_config=config)
    files = sorted(p.name for p in tmp_path.iterdir())
    assert run(make(), max_epochs=2, checkpoint_config=config).saved == len(files)
    assert sorted(p.name for p in tmp_path.iterdir()) == files


def test_a_folder_that_is_missing_is_an_error_before_training(tmp_path):
    trainer = make()
    with pytest.raises(FileNotFoundError, match="folder of its checkpoint.*no"):
        run(trainer, max_epochs=1, checkpoint_config=CheckpointConfig(tmp_path / "no" / "run"))
    assert trainer.total_number_of_samples_seen == 0


def test_sizes_of_numpy():
    session = run(make(), size=np.int64(8), max_samples=np.int64(12), progress_frequency=np.int64(4))
    assert session.counts[DataUnit.sample] == 12


@pytest.mark.parametrize("options", [dict(checkpoint_config="run"), dict(cv_config=source()), dict(test_config=source())])
def test_configs_of_another_kind(options):
    with pytest.raises(TypeError, match=f"training_session expected {list(options)[0]} as a"):
        training_session(make(), source(), 8, **options)


def test_a_checkpoint_that_a_trainer_saved_is_no_session(tmp_path):
    make().save_checkpoint(tmp_path / "run")
    with pytest.raises(RuntimeError, match="expected a checkpoint of a training session"):
        run(make(), max_epochs=1, checkpoint_config=CheckpointConfig(tmp_path / "run"))


@pytest.mark.parametrize("options", [dict(data=[1]), dict(cv_config=CrossValidationConfig(None)),
                                     dict(test_config=TestConfig(TensorDataset(X)))])
def test_what_is_no_source(options):
    with pytest.raises(TypeError, match="sources with next_minibatch and state_dict, got .*MinibatchSource"):
        run(make(), **options)


def test_minibatches_that_do_not_say_where_a_sweep_ends():
    class Plain(MinibatchSource):
        def next_minibatch(self, *args, **kwargs):
            return tuple(super().next_minibatch(*args, **kwargs))

    with pytest.raises(TypeError, match="end_of_sweep, got tuple"):
        run(make(), data=Plain((X, Y)), max_epochs=1)


@pytest.mark.parametrize("make_config, error, message", [
    (lambda: CheckpointConfig(None), TypeError, "NoneType"),
    (lambda: CrossValidationConfig(source(), minibatch_size=0), ValueError, "minibatch_size as a positive integer, got 0"),
    (lambda: CrossValidationConfig(source(), max_samples=0), ValueError, "max_samples"),
    (lambda: CrossValidationConfig(source(), callback=5), TypeError, "a function as callback, got 5"),
    (lambda: TestConfig(source(), True), ValueError, "TestConfig expected minibatch_size")])
def test_configs_with_bad_values(make_config, error, message):
    with pytest.raises(error, match=message):
        make_config()


@pytest.mark.parametrize("size, options, message", [
    (None, {}, "mb_size"), (True, {}, "mb_size"), (8, dict(progress_frequency=0), "progress_frequency"),
    (0, {}, "mb_size"), (8, dict(max_epochs=0), "max_epochs"), (8, dict(max_samples=1.5), "max_samples"),
    (8, dict(progress_frequency=-1), "progress_frequency"),
    (8, dict(checkpoint_config=CheckpointConfig("x", (2, "sweep"))), "CheckpointConfig.frequency"),
])
def test_bad_sizes_and_frequencies(size, options, message):
    with pytest.raises(ValueError, match=message):
        training_session(make(), source(), size, **options)
