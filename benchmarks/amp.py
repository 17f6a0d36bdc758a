"""What mixed precision buys: peak memory and time of training steps in float32, O1 and O2, in one run.

The presets are amp.initialize's: O1 is float32 parameters under autocast; O2 is half parameters, except those of
normalization layers, with float32 masters. The loss scale is fixed, so that no step is skipped. The peak holds all that
there is: parameters, optimizer state, what the step keeps for backward, scratch. Times are medians of interleaved rounds,
ratios those of paired ones.

    python benchmarks/amp.py [--models mlp gpt] [--small] [--threads 1] [--dtype bfloat16] [--torch]

The bars of memory hold at full size only: with --small, parameters and optimizer state outweigh what a step keeps.
PyTorch's memory is not counted: tracemalloc does not see it.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Callable
from typing import Any

import minidl
import minidl.nn.functional as F
from minidl import amp, nn
from minidl.models import GPT, LeNet, resnet20

LEVELS = ("O0", "O1", "O2")
BARS = {"resnet20": {"O1": 0.6, "O2": 0.6}, "gpt": {"O1": 0.7, "O2": 0.6}}
SLOWEST = 4.0  # times the float32 step, with NumPy alone
LOSS_SCALE = 1024.0
VOCABULARY = 65


class Task:
    """A model with a batch, and how it is trained.

    Args:
        make: makes the model.
        shape: of the batch.
        tokens: the batch is of class indices, each position predicts one.
    """

    def __init__(self, make: Callable[[], nn.Module], shape: tuple[int, ...], *, tokens: bool = False):
        self.make, self.shape, self.tokens = make, shape, tokens

    def batch(self) -> tuple[minidl.Tensor, minidl.Tensor]:
        if self.tokens:
            return minidl.randint(0, VOCABULARY, self.shape), minidl.randint(0, VOCABULARY, (self.shape[0] * self.shape[1],))
        return minidl.randn(*self.shape), minidl.randint(0, 10, self.shape[:1])

    def optimizer(self, model: nn.Module) -> Any:
        if self.tokens:
            return minidl.optim.AdamW(model.parameters(), lr=1e-3)
        return minidl.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def gpt() -> nn.Module:
    return GPT(VOCABULARY, context=128, layers=4, heads=4, width=256)


def tasks(small: bool) -> dict[str, Task]:
    return {
        "mlp": Task(mlp, (128, 784)),
        "lenet": Task(LeNet, (64, 1, 28, 28)),
        "resnet20": Task(resnet20, (16 if small else 128, 3, 32, 32)),
        "gpt": Task(gpt, (8 if small else 64, 128), tokens=True),
    }


def trainer(task: Task, level: str, dtype: Any) -> Callable[[], float]:
    """A function that takes one training step and returns the loss."""
    minidl.manual_seed(0)
    model = task.make()
    x, y = task.batch()
    model, optimizer = amp.initialize(model, task.optimizer(model), level, dtype=dtype,
                                      loss_scale=1.0 if level == "O0" else LOSS_SCALE)

    def step() -> float:
        optimizer.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1) if task.tokens else logits, y)
        del logits
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        optimizer.step()
        return loss.item()

    return step


def peak(task: Task, level: str, dtype: Any) -> int:
    """Bytes held at most during a training step, from model to scratch."""
    gc.collect()
    with minidl.track_memory() as everything:
        step = trainer(task, level, dtype)
        step()
        step()
        held = everything.stats()["cpu"]["current"]
        with minidl.track_memory() as one_step:
            step()
        return held + one_step.stats()["cpu"]["peak"]


def times(steps: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each step in interleaved rounds, after one to warm up."""
    for step in steps.values():
        step()
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, step in steps.items():
            start = time.perf_counter()
            step()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def report(name: str, task: Task, args: argparse.Namespace) -> None:
    dtype = getattr(minidl, args.dtype)
    peaks = {level: peak(task, level, dtype) for level in LEVELS}
    steps: dict[str, Callable[[], Any]] = {level: trainer(task, level, dtype) for level in LEVELS}
    if args.torch:
        steps |= torch_steps(name, task, args)
    seconds = times(steps, args.rounds)
    for run, measured in seconds.items():
        ratio = statistics.median(t / t0 for t, t0 in zip(measured, seconds["O0"]))
        memory, missed = "", run in LEVELS and ratio > SLOWEST
        if run in peaks:
            share = peaks[run] / peaks["O0"]
            bar = None if args.small else BARS.get(name, {}).get(run)
            memory = f"{peaks[run] / 2 ** 20:9.1f} MiB {share:5.2f}" + (f" (bar {bar})" if bar else "")
            missed = missed or share > (bar or 2)
        print(f"{name:9s}{run:11s}{memory:32s}{1e3 * statistics.median(measured):9.1f} ms {ratio:6.2f}"
              f"{'  MISSED' if missed else ''}", flush=True)


def torch_steps(name: str, task: Task, args: argparse.Namespace) -> dict[str, Callable[[], Any]]:
    """PyTorch's steps of the same model."""
    try:
        import torch_models
    except ImportError:
        raise SystemExit("--torch compares with PyTorch: pip install '.[bench]'") from None
    if args.dtype == "float16" and name in torch_models.SLOW_IN_FLOAT16:
        print(f"{name}: PyTorch's float16 autocast is left out, its convolutions are some fifty times slower than in float32")
    return torch_models.steps(name, task.shape, args.dtype, args.threads)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", choices=list(tasks(False)), default=list(tasks(False)))
    parser.add_argument("--small", action="store_true", help="GPT with batch 8, ResNet-20 with batch 16")
    parser.add_argument("--dtype", choices=("float16", "bfloat16"), default="float16")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--torch", action="store_true", help="time PyTorch's float32 and autocast steps as well")
    args = parser.parse_args()
    minidl.set_num_threads(args.threads)
    print(f"{args.dtype}, {args.threads} threads; peak bytes and time of a training step, and their ratios to O0 (float32)")
    for name in args.models:
        report(name, tasks(args.small)[name], args)


if __name__ == "__main__":
    main()
