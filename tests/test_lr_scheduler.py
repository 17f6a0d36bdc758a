"""Learning-rate schedules: each against its formula, composition, resuming, skipped steps, and errors."""

from __future__ import annotations

import math
import re
import warnings

import pytest

import minidl
from minidl.nn.parameter import Parameter
from minidl.optim import LBFGS, SGD, Adam, Adamax, Optimizer, Rprop
from minidl.optim.lr_scheduler import (
    ChainedScheduler,
    ConstantLR,
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    CosineDecayLR,
    CyclicLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    LRScheduler,
    MultiplicativeLR,
    MultiStepLR,
    OneCycleLR,
    PolynomialLR,
    ReduceLROnPlateau,
    SequentialLR,
    StepLR,
    WarmupLR,
    cosine_with_warmup,
)

STEPS = 60
BASES = (0.1, 0.03)


def optimizer(kind=SGD, lrs=BASES, **options):
    return kind([{"params": [Parameter(minidl.ones(2))], "lr": lr} for lr in lrs], **options)


def lrs(opt):
    return [group["lr"] for group in opt.param_groups]


def momenta(opt):
    return [group["betas"][0] if "betas" in group else group["momentum"] for group in opt.param_groups]


def course(opt, scheduler, steps=STEPS, of=lrs):
    """What the groups have at epochs 0 ... steps."""
    values = [of(opt)]
    for _ in range(steps):
        scheduler.step()
        values.append(of(opt))
    return values


class Scaled:
    """A function of the epoch with a state."""

    def __init__(self, scale):
        self.scale = scale

    def __call__(self, epoch):
        return self.scale / (1 + epoch)


def cosine(share):
    return 0.5 + 0.5 * math.cos(math.pi * share)


def restarts(t, length, times):
    while t >= length:
        t, length = t - length, length * times
    return cosine(t / length)


def triangle(t, up, down):
    t = t % (up + down)
    return t / up if t <= up else (up + down - t) / down


def cycle(t, size):
    return 1 + t // size


def between(points, t, curve):
    """The value at t of a curve through points (t, value)."""
    (t0, first), (t1, last) = next((a, b) for a, b in zip(points, points[1:]) if t <= b[0] or b == points[-1])
    share = (t - t0) / (t1 - t0)
    return last + (first - last) * (cosine(share) if curve == "cos" else 1 - share)


# name, constructor, lr of the initial lr and the epoch

ROWS = [
    ("step", lambda o: StepLR(o, 7, 0.5), lambda b, t: b * 0.5 ** (t // 7)),
    ("step of 1", lambda o: StepLR(o, 1), lambda b, t: b * 0.1 ** t),
    ("step to 0", lambda o: StepLR(o, 9, 0.0), lambda b, t: b if t < 9 else 0),
    ("milestones", lambda o: MultiStepLR(o, [30, 5, 30, 44], 0.3),
     lambda b, t: b * 0.3 ** sum(t >= m for m in (5, 30, 30, 44))),
    ("milestone 0", lambda o: MultiStepLR(o, iter([0, 5])), lambda b, t: b * (0.1 if t < 5 else 0.01)),
    ("constant", lambda o: ConstantLR(o), lambda b, t: b / 3 if t < 5 else b),
    ("constant 17", lambda o: ConstantLR(o, 0.25, 17), lambda b, t: b / 4 if t < 17 else b),
    ("constant 0", lambda o: ConstantLR(o, 0.0, 3), lambda b, t: 0 if t < 3 else b),
    ("linear", lambda o: LinearLR(o), lambda b, t: b * (1 / 3 + 2 / 3 * min(t, 5) / 5)),
    ("linear down", lambda o: LinearLR(o, 0.9, 0.0, 40), lambda b, t: b * 0.9 * (1 - min(t, 40) / 40)),
    ("linear up", lambda o: LinearLR(o, 0.001, 1, 50), lambda b, t: b * (0.001 + 0.999 * min(t, 50) / 50)),
    ("linear at once", lambda o: LinearLR(o, 0.5, 1, 0), lambda b, t: b),
    ("exponential", lambda o: ExponentialLR(o, 0.93), lambda b, t: b * 0.93 ** t),
    ("range test", lambda o: ExponentialLR(o, 1.3), lambda b, t: b * 1.3 ** t),
    ("polynomial", lambda o: PolynomialLR(o), lambda b, t: b * max(0, 1 - t / 5)),
    ("polynomial 0.9", lambda o: PolynomialLR(o, 33, 0.9), lambda b, t: b * max(0, 1 - t / 33) ** 0.9),
    ("polynomial 2", lambda o: PolynomialLR(o, 100, 2.0), lambda b, t: b * (1 - t / 100) ** 2),
    ("cosine", lambda o: CosineAnnealingLR(o, 20), lambda b, t: b * cosine(t / 20)),
    ("cosine to eta_min", lambda o: CosineAnnealingLR(o, 13, 0.001), lambda b, t: 0.001 + (b - 0.001) * cosine(t / 13)),
    ("cosine of 1", lambda o: CosineAnnealingLR(o, 1), lambda b, t: b * (t % 2 == 0)),
    ("cosine decay", lambda o: CosineDecayLR(o, 25, 0.01), lambda b, t: 0.01 + (b - 0.01) * cosine(min(t, 25) / 25)),
    ("lambda", lambda o: LambdaLR(o, lambda t: 0.95 ** t), lambda b, t: b * 0.95 ** t),
    ("object", lambda o: LambdaLR(o, Scaled(2.0)), lambda b, t: b * 2 / (1 + t)),
    ("multiplicative", lambda o: MultiplicativeLR(o, lambda t: 0.9 + t / 1000),
     lambda b, t: b * math.prod(0.9 + s / 1000 for s in range(1, t + 1))),
    ("restarts", lambda o: CosineAnnealingWarmRestarts(o, 7), lambda b, t: b * cosine(t % 7 / 7)),
    ("restarts of 2", lambda o: CosineAnnealingWarmRestarts(o, 5, 2, 0.001),
     lambda b, t: 0.001 + (b - 0.001) * restarts(t, 5, 2)),
    ("restarts of 3", lambda o: CosineAnnealingWarmRestarts(o, 1, 3), lambda b, t: b * restarts(t, 1, 3)),
    ("one cycle", lambda o: OneCycleLR(o, 0.5, 61), lambda b, t: between([(0, 0.02), (17.3, 0.5), (60, 2e-6)], t, "cos")),
    ("one cycle, lines", lambda o: OneCycleLR(o, 0.5, epochs=6, steps_per_epoch=11, pct_start=0.2, anneal_strategy="linear"),
     lambda b, t: between([(0, 0.02), (12.2, 0.5), (65, 2e-6)], t, "linear")),
    ("three phases", lambda o: OneCycleLR(o, 0.5, 70, three_phase=True, div_factor=10, final_div_factor=100),
     lambda b, t: between([(0, 0.05), (20, 0.5), (40, 0.05), (69, 0.0005)], t, "cos")),
    ("no rise", lambda o: OneCycleLR(o, 0.5, 61, pct_start=0), lambda b, t: between([(-1, 0.5), (60, 2e-6)], t, "cos")),
    ("rise of no length", lambda o: OneCycleLR(o, 0.5, 100, pct_start=0.01),
     lambda b, t: between([(0, 0.5), (99, 2e-6)], t, "cos")),
    ("triangles", lambda o: CyclicLR(o, 0.01, 0.5, 7), lambda b, t: 0.01 + 0.49 * triangle(t, 7, 7)),
    ("shrinking triangles", lambda o: CyclicLR(o, 0.01, 0.5, 7, 4, "triangular2"),
     lambda b, t: 0.01 + 0.49 * triangle(t, 7, 4) / 2 ** (cycle(t, 11) - 1)),
    ("exponential triangles", lambda o: CyclicLR(o, 0.01, 0.5, 6, mode="exp_range", gamma=0.97),
     lambda b, t: 0.01 + 0.49 * triangle(t, 6, 6) * 0.97 ** t),
    ("own triangles", lambda o: CyclicLR(o, 0.01, 0.5, 9, scale_fn=lambda x: 1 / x),
     lambda b, t: 0.01 + 0.49 * triangle(t, 9, 9) / cycle(t, 18)),
    ("objects' triangles", lambda o: CyclicLR(o, 0.01, 0.5, 9, scale_fn=Scaled(3.0), scale_mode="iterations"),
     lambda b, t: 0.01 + 0.49 * triangle(t, 9, 9) * 3 / (1 + t)),
    ("chain", lambda o: ChainedScheduler([ConstantLR(o, 0.1, 20), ExponentialLR(o, 0.9)]),
     lambda b, t: b * (0.1 if t < 20 else 1) * 0.9 ** t),
    ("chain of ramps", lambda o: ChainedScheduler([LinearLR(o, 0.1, 1, 20), PolynomialLR(o, 80), StepLR(o, 8, 0.5)]),
     lambda b, t: b * (0.1 + 0.9 * min(t, 20) / 20) * (1 - t / 80) * 0.5 ** (t // 8)),
    ("sequence", lambda o: SequentialLR(o, [LinearLR(o, 0.01, 1, 10), CosineAnnealingLR(o, 30, 1e-4), StepLR(o, 3)], [10, 40]),
     lambda b, t: b * (0.01 + 0.99 * t / 10) if t < 10 else 1e-4 + (b - 1e-4) * cosine((t - 10) / 30) if t < 40
     else b * 0.1 ** ((t - 40) // 3)),
    ("sequence with restarts", lambda o: SequentialLR(o, [ConstantLR(o, 0.1, 99), CosineAnnealingWarmRestarts(o, 7, 2)], [9]),
     lambda b, t: b * 0.1 if t < 9 else b * restarts(t - 9, 7, 2)),
    ("empty sequences", lambda o: SequentialLR(o, [ConstantLR(o), ExponentialLR(o, 0.9), ExponentialLR(o, 0.8)], [0, 0]),
     lambda b, t: b * 0.8 ** t),
    ("sequence of chains",
     lambda o: SequentialLR(o, [ChainedScheduler([ConstantLR(o, 0.1, 10), ExponentialLR(o, 0.9)]),
                                ChainedScheduler([ConstantLR(o, 0.5, 4), ExponentialLR(o, 0.8)])], [20]),
     lambda b, t: b * (0.1 if t < 10 else 1) * 0.9 ** t if t < 20 else b * (0.5 if t < 24 else 1) * 0.8 ** (t - 20)),
    ("sequence in a sequence",
     lambda o: SequentialLR(o, [SequentialLR(o, [StepLR(o, 2), ExponentialLR(o, 0.9)], [5]),
                                SequentialLR(o, [StepLR(o, 3), ExponentialLR(o, 0.8)], [6])], [20]),
     lambda b, t: b * 0.1 ** (t // 2) if t < 5 else b * 0.9 ** (t - 5) if t < 20
     else b * 0.1 ** ((t - 20) // 3) if t < 26 else b * 0.8 ** (t - 26)),
    ("warm-up", lambda o: WarmupLR(o, 8), lambda b, t: b * min(1, (t + 1) / 8)),
    ("warm-up and steps", lambda o: WarmupLR(o, 8, StepLR(o, 5, 0.5)),
     lambda b, t: b * (t + 1) / 8 if t < 8 else b * 0.5 ** ((t - 8) // 5)),
    ("no warm-up", lambda o: WarmupLR(o, 0, ExponentialLR(o, 0.9)), lambda b, t: b * 0.9 ** t),
    ("warm-up of 1", lambda o: WarmupLR(o, 1, ExponentialLR(o, 0.9)), lambda b, t: b * 0.9 ** max(t - 1, 0)),
    ("cosine with warm-up", lambda o: cosine_with_warmup(o, 10, 50, 0.003),
     lambda b, t: b * (t + 1) / 10 if t < 10 else 0.003 + (b - 0.003) * cosine(min(1, (t - 10) / 40))),
]
JUMPS = [row for row in ROWS if not re.search("sequence|chain|multiplicative|warm-up", row[0])]
TABLE = pytest.mark.parametrize("make, formula", [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
MAKERS = pytest.mark.parametrize("make", [row[1] for row in ROWS], ids=[row[0] for row in ROWS])


@TABLE
@pytest.mark.parametrize("kind", [SGD, Adam], ids=lambda k: k.__name__)
def test_the_lr_follows_the_formula(make, formula, kind):
    opt = optimizer(kind)
    found = course(opt, make(opt))
    for t, values in enumerate(found):
        assert values == pytest.approx([formula(b, t) for b in BASES], rel=1e-11, abs=1e-17), t


@pytest.mark.parametrize("make, formula", [row[1:] for row in JUMPS], ids=[row[0] for row in JUMPS])
def test_a_jump_to_an_epoch_sets_the_lr_of_that_epoch(make, formula):
    opt = optimizer()
    scheduler = make(opt)
    for epoch in (3, 17, 2, 59, 0):
        scheduler.step(epoch)
        assert lrs(opt) == pytest.approx([formula(b, epoch) for b in BASES], rel=1e-12, abs=1e-17)
        scheduler.step()
        assert lrs(opt) == pytest.approx([formula(b, epoch + 1) for b in BASES], rel=1e-12, abs=1e-17)


@MAKERS
def test_a_run_that_is_saved_in_the_middle_ends_the_same(make, tmp_path):
    straight = optimizer(momentum=0.5)
    expected = course(straight, make(straight), 30, lambda o: [lrs(o), momenta(o)])
    first = optimizer(momentum=0.5)
    scheduler = make(first)
    course(first, scheduler, 15)
    minidl.save([first.state_dict(), scheduler.state_dict()], tmp_path / "state")
    second = optimizer(momentum=0.5)
    resumed = make(second)
    saved = minidl.load(tmp_path / "state")
    second.load_state_dict(saved[0])
    resumed.load_state_dict(saved[1])
    assert resumed.get_last_lr() == scheduler.get_last_lr() == lrs(second)
    assert course(second, resumed, 15, lambda o: [lrs(o), momenta(o)]) == expected[15:]


@MAKERS
def test_a_state_dict_does_not_change_with_the_schedule(make):
    opt = optimizer()
    scheduler = make(opt)
    state = scheduler.state_dict()
    before = repr(state)
    course(opt, scheduler, 12)
    assert repr(state) == before


@MAKERS
def test_the_schedule_gives_no_warning_before_or_without_a_step_of_the_optimizer(make):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        opt = optimizer()
        scheduler = make(opt)
        scheduler.step()
        scheduler.step()
        assert scheduler.get_last_lr() == lrs(opt)


# Skipped steps

@MAKERS
def test_a_schedule_stays_only_if_all_steps_since_its_last_were_skipped(make):
    plain, scaled = optimizer(), optimizer()
    expected = course(plain, make(plain), 4)
    scheduler = make(scaled)
    found = [lrs(scaled)]
    for tried in ("+", "-", "-+", "--", "", "+-"):  # taken, skipped
        for one in tried:
            if one == "+":
                scaled.step()
            else:
                scaled.skipped_steps += 1
        scheduler.step()
        found.append(lrs(scaled))
    assert found == [expected[i] for i in (0, 1, 1, 2, 2, 3, 4)]


def test_two_schedules_of_an_optimizer_each_count_for_themselves():
    opt = optimizer()
    every, seldom = ExponentialLR(opt, 0.9), ConstantLR(opt, 1.0)
    opt.step()
    every.step()
    opt.skipped_steps += 1
    every.step()
    seldom.step()
    assert (every.last_epoch, seldom.last_epoch) == (1, 1)


def test_a_plateau_does_not_count_an_epoch_of_skipped_steps():
    opt = optimizer()
    scheduler = ReduceLROnPlateau(opt, patience=0)
    scheduler.step(1.0)
    opt.skipped_steps += 3
    scheduler.step(2.0)
    assert lrs(opt) == list(BASES) and scheduler.num_bad_epochs == 0


def test_a_skip_before_saving_counts_after_loading():
    opt = optimizer()
    scheduler = StepLR(opt, 1)
    opt.skipped_steps += 1
    again = optimizer()
    resumed = StepLR(again, 1)
    resumed.load_state_dict(scheduler.state_dict())
    resumed.step()
    assert resumed.last_epoch == 0
    resumed.step()
    assert resumed.last_epoch == 1


def test_parts_step_with_the_whole_whatever_they_have_seen_themselves():
    opt = optimizer()
    part = ExponentialLR(opt, 0.9)
    opt.skipped_steps += 1
    whole = ChainedScheduler([part])
    whole.step()
    assert part.last_epoch == 1


def test_optimizers_count_the_steps_they_take():
    opt = optimizer()
    opt.step()
    opt.step()
    p = Parameter(minidl.ones(2))
    newton = LBFGS([p], max_iter=2)

    def closure():
        newton.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    newton.step(closure)
    assert (opt.taken_steps, opt.skipped_steps, newton.taken_steps) == (2, 0, 1)


# What is common

def test_each_step_multiplies_what_is_there():
    opt = optimizer()
    scheduler = ExponentialLR(opt, 0.5)
    scheduler.step()
    opt.param_groups[0]["lr"] = 8.0
    scheduler.step()
    assert lrs(opt) == [4.0, 0.03 / 4]


def test_a_group_that_is_added_later_begins_with_its_own_lr():
    opt = optimizer()
    scheduler = CosineAnnealingLR(opt, 2)
    scheduler.step()
    scheduler.step()
    opt.add_param_group({"params": [Parameter(minidl.ones(3))], "lr": 1.0})
    scheduler.step()
    assert scheduler.get_last_lr() == pytest.approx([0.05, 0.015, 1.5])  # from the lowest point it rises by base * 0.5


def test_the_lr_is_what_the_optimizer_uses():
    p = Parameter(minidl.zeros(1))
    opt = SGD([p], lr=1.0)
    scheduler = StepLR(opt, 1, 0.5)
    for _ in range(3):
        opt.zero_grad()
        p.sum().backward()
        opt.step()
        scheduler.step()
    assert p.tolist() == [-1.75]


CONTINUED = [
    (lambda o: StepLR(o, 5, 0.5, last_epoch=4), 0.5, 0.5),  # the jump at epoch 5 is caught up
    (lambda o: StepLR(o, 5, 0.5, last_epoch=5), 1, 1),
    (lambda o: MultiStepLR(o, [5], 0.5, last_epoch=4), 0.5, 0.5),
    (lambda o: ConstantLR(o, 0.5, 5, last_epoch=4), 2, 2),
    (lambda o: ExponentialLR(o, 0.5, last_epoch=4), 1, 0.5),  # a smooth schedule begins with the lr that it finds
    (lambda o: LinearLR(o, 0.5, 1, 10, last_epoch=4), 1, 0.8 / 0.75),
    (lambda o: PolynomialLR(o, 10, last_epoch=4), 1, 0.4 / 0.5),
    (lambda o: CosineAnnealingLR(o, 12, last_epoch=5), 1, cosine(7 / 12) / cosine(0.5)),
    (lambda o: MultiplicativeLR(o, lambda t: 0.5, last_epoch=4), 1, 0.5),
    (lambda o: LambdaLR(o, lambda t: t, last_epoch=4), 50, 60),  # of initial_lr, 10 times the lr
    (lambda o: CosineAnnealingWarmRestarts(o, 2, 2, last_epoch=7), 10 * cosine(2 / 8), 10 * cosine(3 / 8)),
    (lambda o: SequentialLR(o, [StepLR(o, 9, last_epoch=6), StepLR(o, 2, 0.5, last_epoch=6)], [5], last_epoch=6), 10, 5),
]


@pytest.mark.parametrize("make, first, second", CONTINUED)
def test_last_epoch_continues_a_run(make, first, second):
    opt = optimizer()
    for group in opt.param_groups:
        group["initial_lr"] = 10 * group["lr"]
    scheduler = make(opt)
    assert lrs(opt) == pytest.approx([first * b for b in BASES])
    scheduler.step()
    assert lrs(opt) == pytest.approx([second * b for b in BASES])


def test_a_schedule_of_users_defines_get_lr():
    class Halving(LRScheduler):
        def get_lr(self):
            return [base / 2 ** self.last_epoch for base in self.base_lrs]

    opt = optimizer()
    scheduler = Halving(opt)
    assert course(opt, scheduler, 2) == [[0.1, 0.03], [0.05, 0.015], [0.025, 0.0075]]
    scheduler.step(4)
    assert scheduler.get_last_lr() == [0.1 / 16, 0.03 / 16]


# Fractional epochs, groups, momentum

@pytest.mark.parametrize("length, times", [(7, 1), (5, 2), (3, 3)])
def test_warm_restarts_take_fractional_epochs(length, times):
    opt = optimizer()
    scheduler = CosineAnnealingWarmRestarts(opt, length, times)
    for i in (0, 1, 5, 29, 30, 80, 243, 47):
        scheduler.step(i / 4)
        assert lrs(opt) == pytest.approx([b * restarts(i / 4, length, times) for b in BASES], rel=1e-12)
        assert scheduler.last_epoch == i // 4
    scheduler.step()  # a whole epoch further, from 11.75
    assert lrs(opt) == pytest.approx([b * restarts(12.75, length, times) for b in BASES], rel=1e-12)


def test_functions_and_bounds_may_be_given_for_each_group():
    opt = optimizer()
    assert course(opt, LambdaLR(opt, [lambda t: 1 + t, lambda t: 1]), 1) == [[0.1, 0.03], [0.2, 0.03]]
    opt = optimizer(momentum=0.5)
    CyclicLR(opt, [0.1, 0.2], (0.3, 0.6), 2, base_momentum=[0.1, 0.2], max_momentum=[0.8, 0.9]).step()
    assert lrs(opt) == pytest.approx([0.2, 0.4]) and momenta(opt) == pytest.approx([0.45, 0.55])
    opt = optimizer()
    OneCycleLR(opt, [0.5, 1.0], 10, max_momentum=[0.8, 0.9])
    assert lrs(opt) == pytest.approx([0.02, 0.04]) and momenta(opt) == pytest.approx([0.8, 0.9])


@pytest.mark.parametrize("kind", [SGD, Adam, Adamax], ids=lambda k: k.__name__)
@pytest.mark.parametrize("make, formula", [
    (lambda o: OneCycleLR(o, 0.5, 31), lambda t: between([(0, 0.95), (8.3, 0.85), (30, 0.95)], t, "cos")),
    (lambda o: OneCycleLR(o, 0.5, 40, three_phase=True, base_momentum=0.7, max_momentum=0.8, anneal_strategy="linear"),
     lambda t: between([(0, 0.8), (11, 0.7), (22, 0.8), (39, 0.8)], t, "linear")),
    (lambda o: CyclicLR(o, 0.1, 0.5, 7, 3, "triangular2"), lambda t: 0.9 - 0.1 * triangle(t, 7, 3) / 2 ** (t // 10)),
    (lambda o: CyclicLR(o, 0.1, 0.5, 7, mode="exp_range", gamma=0.9, base_momentum=0.2),
     lambda t: 0.9 - 0.7 * triangle(t, 7, 7) * 0.9 ** t),
], ids=["one cycle", "three phases", "triangular2", "exp_range"])
def test_momentum_moves_against_the_lr(make, formula, kind):
    opt = optimizer(kind)
    for t, values in enumerate(course(opt, make(opt), 30, momenta)):
        assert values == pytest.approx([formula(t)] * 2, rel=1e-12)
    if kind is not SGD:
        assert all(group["betas"][1] == 0.999 for group in opt.param_groups)


def test_momentum_stays_where_it_is_not_cycled():
    opt = optimizer(momentum=0.3)
    course(opt, OneCycleLR(opt, 0.5, 10, cycle_momentum=False), 5)
    course(opt, CyclicLR(opt, 0.1, 0.5, 3, cycle_momentum=False), 5)
    assert momenta(opt) == [0.3, 0.3]


def test_the_attributes_of_callable_objects_are_state_and_functions_are_left_out():
    opt = optimizer()
    state = LambdaLR(opt, [Scaled(2.0), lambda t: t]).state_dict()
    assert state["lr_lambdas"] == [{"scale": 2.0}, None]
    own = Scaled(5.0)
    LambdaLR(opt, [own, math.sqrt]).load_state_dict(state)
    assert own.scale == 2.0
    cyclic = CyclicLR(opt, 0.1, 0.2, scale_fn=Scaled(3.0)).state_dict()
    assert cyclic["_scale_fn_custom"] == {"scale": 3.0}
    own = Scaled(5.0)
    CyclicLR(opt, 0.1, 0.2, scale_fn=own).load_state_dict(cyclic)
    assert own.scale == 3.0
    assert CyclicLR(opt, 0.1, 0.2, scale_fn=math.sqrt).state_dict()["_scale_fn_custom"] is None


# ReduceLROnPlateau: metrics, and the epochs (from 1) at which the lr is reduced

PLATEAUS = [
    ({"patience": 2}, [1, 1, 1, 1, 1, 1, 1], [4, 7]),
    ({"patience": 0}, [3, 2, 1, 1, 2, 0.5], [4, 5]),
    ({"patience": 0, "cooldown": 2}, [1, 1, 1, 1, 1, 1, 1, 1], [2, 5, 8]),
    ({"patience": 1, "mode": "max"}, [1, 2, 3, 2, 2, 1], [5]),
    ({"patience": 0, "threshold": 0.1}, [1, 0.95, 0.89, 0.81, 0.7], [2, 4]),
    ({"patience": 0, "threshold": 0.1, "threshold_mode": "abs"}, [10, 9.95, 9.8, 9.75], [2, 4]),
    ({"patience": 0, "threshold": 0.5, "mode": "max"}, [1, 1.4, 1.6, 2.3], [2, 4]),
    ({"patience": 0, "threshold": 0.5, "mode": "max", "threshold_mode": "abs"}, [1, 1.4, 1.6, 2.0], [2, 4]),
    ({"patience": 1}, [1, math.nan, math.nan, 0.5], [3]),
]


@pytest.mark.parametrize("options, metrics, reduced", PLATEAUS)
def test_a_plateau_reduces_the_lr(options, metrics, reduced):
    opt = optimizer()
    scheduler = ReduceLROnPlateau(opt, factor=0.5, **options)
    for epoch, metric in enumerate(metrics, 1):
        scheduler.step(metric)
        assert lrs(opt) == pytest.approx([b * 0.5 ** sum(e <= epoch for e in reduced) for b in BASES])
    assert scheduler.last_epoch == len(metrics) and scheduler.get_last_lr() == lrs(opt)


@pytest.mark.parametrize("options, expected", [
    ({"min_lr": 0.02}, [0.02, 0.02]), ({"min_lr": [0.05, 0.001]}, [0.05, 0.001]), ({"eps": 0.03}, [0.01, 0.03]),
])
def test_a_plateau_has_lowest_lrs_and_smallest_changes(options, expected):
    opt = optimizer()
    scheduler = ReduceLROnPlateau(opt, patience=0, **options)
    for _ in range(6):
        scheduler.step(minidl.tensor(1.0))
    assert lrs(opt) == pytest.approx(expected)


def test_a_plateau_resumes_exactly(tmp_path):
    metrics = [math.cos(i * i) for i in range(40)]
    runs = []
    for stop in (40, 17):
        opt = optimizer()
        scheduler = ReduceLROnPlateau(opt, "max", 0.7, 1, cooldown=1)
        found = []
        for i, metric in enumerate(metrics):
            if i == stop:
                minidl.save([opt.state_dict(), scheduler.state_dict()], tmp_path / "state")
                saved = minidl.load(tmp_path / "state")
                opt = optimizer()
                scheduler = ReduceLROnPlateau(opt, "max", 0.7, 1, cooldown=1)
                opt.load_state_dict(saved[0])
                scheduler.load_state_dict(saved[1])
            scheduler.step(metric)
            found.append(lrs(opt))
        runs.append(found)
    assert runs[0] == runs[1] and runs[0][-1] != list(BASES)


def test_a_plateau_serves_groups_that_are_added_later_unless_min_lr_is_a_list():
    for lowest, fits in ((0.0, True), ([0.0, 0.0], False)):
        opt = optimizer()
        scheduler = ReduceLROnPlateau(opt, patience=0, min_lr=lowest)
        scheduler.step(1)
        opt.add_param_group({"params": [Parameter(minidl.ones(1))], "lr": 1.0})
        if fits:
            scheduler.step(1)
            assert lrs(opt) == pytest.approx([0.01, 0.003, 0.1])
        else:
            with pytest.raises(RuntimeError, match="expected 2 parameter groups.*got 3; extend its min_lrs"):
                scheduler.step(1)


# Errors

def other():
    return StepLR(optimizer(), 1)


ERRORS = [
    (lambda o: StepLR([1], 3), TypeError, "StepLR expected an Optimizer, got list"),
    (lambda o: ReduceLROnPlateau("adam"), TypeError, "expected an Optimizer, got str"),
    (lambda o: CyclicLR(None, 1, 2), TypeError, "expected an Optimizer, got NoneType"),
    (lambda o: OneCycleLR(None, 1, 2), TypeError, "expected an Optimizer, got NoneType"),
    (lambda o: ExponentialLR(o, 0.9, last_epoch=3), KeyError, r"expected initial_lr in param_groups\[0\]"),
    (lambda o: StepLR(o, 0), ValueError, "step_size > 0, got 0"),
    (lambda o: ConstantLR(o, 1.5), ValueError, r"factor in \[0, 1\], got 1.5"),
    (lambda o: ConstantLR(o, -0.5), ValueError, r"factor in \[0, 1\], got -0.5"),
    (lambda o: LinearLR(o, 0), ValueError, r"start_factor in \(0, 1\], got 0"),
    (lambda o: LinearLR(o, 1.1), ValueError, r"start_factor in \(0, 1\], got 1.1"),
    (lambda o: LinearLR(o, 0.5, 1.1), ValueError, r"end_factor in \[0, 1\], got 1.1"),
    (lambda o: PolynomialLR(o, 0), ValueError, "total_iters > 0, got 0"),
    (lambda o: CosineAnnealingLR(o, 0), ValueError, "T_max > 0, got 0"),
    (lambda o: CosineAnnealingWarmRestarts(o, 0), ValueError, "T_0 as a positive int, got 0"),
    (lambda o: CosineAnnealingWarmRestarts(o, 2.5), ValueError, "T_0 as a positive int, got 2.5"),
    (lambda o: CosineAnnealingWarmRestarts(o, 2, 0), ValueError, "T_mult as a positive int, got 0"),
    (lambda o: CosineAnnealingWarmRestarts(o, 2, 1, "0"), ValueError, "eta_min as a number, got str"),
    (lambda o: CosineAnnealingWarmRestarts(o, 2).step(-1), ValueError, "epoch >= 0, got -1"),
    (lambda o: LambdaLR(o, [lambda t: 1]), ValueError, "one lr_lambda, or a list of 2 .* got a list of 1"),
    (lambda o: LambdaLR(o, 0.5), TypeError, "lr_lambda as a function of the epoch, got float"),
    (lambda o: MultiplicativeLR(o, 0.5), TypeError, "MultiplicativeLR expected lr_lambda as a function"),
    (lambda o: OneCycleLR(o, 1), ValueError, "total_steps, or epochs and steps_per_epoch, got neither"),
    (lambda o: OneCycleLR(o, 1, epochs=3), ValueError, "got neither"),
    (lambda o: OneCycleLR(o, 1, 0), ValueError, "total_steps as a positive int, got 0"),
    (lambda o: OneCycleLR(o, 1, 1.5), ValueError, "total_steps as a positive int, got 1.5"),
    (lambda o: OneCycleLR(o, 1, epochs=3, steps_per_epoch=-1), ValueError, "steps_per_epoch as a positive int, got -1"),
    (lambda o: OneCycleLR(o, 1, 9, pct_start=1.5), ValueError, r"pct_start in \[0, 1\], got 1.5"),
    (lambda o: OneCycleLR(o, 1, 9, anneal_strategy="tanh"), ValueError, "'cos' or 'linear', got 'tanh'"),
    (lambda o: OneCycleLR(o, [1], 9), ValueError, "one max_lr, or a list of 2 .* got a list of 1"),
    (lambda o: OneCycleLR(optimizer(Rprop), 1, 9), ValueError, "momentum or betas, got Rprop; pass cycle_momentum=False"),
    (lambda o: course(o, OneCycleLR(o, 1, 9), 10), ValueError, "at most 9 steps, got step 10"),
    (lambda o: CyclicLR(o, 1, 2, 0), ValueError, "step_size_up > 0 and step_size_down >= 0, got 0 and None"),
    (lambda o: CyclicLR(o, 1, 2, 1, -1), ValueError, "got 1 and -1"),
    (lambda o: CyclicLR(o, 1, 2, mode="square"), ValueError, "or a scale_fn, got 'square'"),
    (lambda o: CyclicLR(o, 1, 2, scale_mode="epoch"), ValueError, "'cycle' or 'iterations', got 'epoch'"),
    (lambda o: CyclicLR(o, [1, 2, 3], 2), ValueError, "one base_lr, or a list of 2 .* got a list of 3"),
    (lambda o: CyclicLR(optimizer(Rprop), 1, 2), ValueError, "CyclicLR.cycle_momentum=True. expected an optimizer with"),
    (lambda o: ReduceLROnPlateau(o, factor=1.0), ValueError, "factor < 1, got 1.0"),
    (lambda o: ReduceLROnPlateau(o, "avg"), ValueError, "'min' or 'max', got 'avg'"),
    (lambda o: ReduceLROnPlateau(o, threshold_mode="x"), ValueError, "'rel' or 'abs', got 'x'"),
    (lambda o: ReduceLROnPlateau(o, min_lr=[0]), ValueError, "one min_lr, or a list of 2 .* got a list of 1"),
    (lambda o: SequentialLR(o, [], []), ValueError, "SequentialLR expected at least one schedule"),
    (lambda o: SequentialLR(o, [StepLR(o, 1), StepLR(o, 1)], [1, 2]), ValueError, "1 milestones between 2 schedules, got 2"),
    (lambda o: SequentialLR(o, [StepLR(o, 1)] * 3, [4, 2]), ValueError, r"increasing milestones, got \[4, 2\]"),
    (lambda o: SequentialLR(o, [StepLR(o, 1), "x"], [1]), TypeError, "schedules, got str at index 1"),
    (lambda o: SequentialLR(o, [ReduceLROnPlateau(o)], []), ValueError, "no metrics, got ReduceLROnPlateau at index 0"),
    (lambda o: SequentialLR(o, [other()], []), ValueError, "of one optimizer, got StepLR at index 0"),
    (lambda o: ChainedScheduler([]), ValueError, "ChainedScheduler expected at least one schedule"),
    (lambda o: ChainedScheduler([3]), TypeError, "schedules, got int at index 0"),
    (lambda o: ChainedScheduler([StepLR(o, 1), other()]), ValueError, "of one optimizer, got StepLR at index 1"),
    (lambda o: WarmupLR(o, -1), ValueError, "warmup_steps >= 0, got -1"),
    (lambda o: WarmupLR(o, 3, other()), ValueError, "WarmupLR expected schedules of one optimizer"),
    (lambda o: cosine_with_warmup(o, 10, 10), ValueError, "0 <= warmup_steps < total_steps, got 10 and 10"),
    (lambda o: LRScheduler(o), NotImplementedError, "LRScheduler expected a method get_lr"),
    (lambda o: StepLR(o, 1).load_state_dict(ExponentialLR(o, 0.9).state_dict()), ValueError, "StepLR.load_state_dict expected"),
    (lambda o: SequentialLR(o, [StepLR(o, 1)], []).load_state_dict(StepLR(o, 1).state_dict()), ValueError,
     "states of 1 schedules, got 0"),
    (lambda o: StepLR(optimizer(lrs=[1.0]), 1).load_state_dict(StepLR(o, 1).state_dict()), ValueError,
     "at most 1 parameter groups, got 2"),
]


@pytest.mark.parametrize("call, error, message", ERRORS)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(optimizer())


def test_functions_for_groups_refuse_a_group_that_is_added_later():
    opt = optimizer()
    scheduler = LambdaLR(opt, lambda t: 1.0)
    opt.add_param_group({"params": [Parameter(minidl.ones(1))], "lr": 1.0})
    with pytest.raises(ValueError, match="LambdaLR expected the 2 parameter groups that it was made for, got 3"):
        scheduler.step()


def test_states_of_pytorch_are_loaded():
    opt = optimizer()
    scheduler = MultiStepLR(opt, [1])
    scheduler.load_state_dict({"milestones": {4: 1, 2: 2}, "gamma": 0.5, "base_lrs": [0.1, 0.03], "last_epoch": 1,
                               "_step_count": 2, "_is_initial": False, "_get_lr_called_within_step": False,
                               "_last_lr": [0.1, 0.03]})
    assert course(opt, scheduler, 3)[1:] == [[b * f for b in BASES] for f in (0.25, 0.25, 0.125)]


def test_a_failed_load_changes_nothing():
    opt = optimizer()
    scheduler = StepLR(opt, 3)
    before = scheduler.state_dict()
    with pytest.raises(ValueError):
        scheduler.load_state_dict({**before, "step_size": 5, "more": 1})
    assert scheduler.state_dict() == before and isinstance(scheduler.optimizer, Optimizer)
