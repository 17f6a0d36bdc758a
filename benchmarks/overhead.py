"""The engine's overhead: a training step of a small MLP against PyTorch's eager CPU mode, in one run.

The model is 64-64-64-10 with ReLU, batch 32, cross-entropy, SGD with momentum 0.9: so small that hardly anything but
overhead is measured. The two frameworks alternate in short rounds. A round in which a thread of this process waited
for a processor (/proc/self/task/*/schedstat) is dropped: on a busy machine PyTorch's second thread collapses, which
would fake a win.

    pip install '.[bench]'; python benchmarks/overhead.py
"""

from __future__ import annotations

import argparse
import gc
import glob
import statistics
import time

import numpy as np

import minidl
import minidl.nn.functional as F

SIZES, BATCH, LR, MOMENTUM = (64, 64, 64, 10), 32, 0.05, 0.9


def minidl_step():
    """A training step in minidl with minidl.nn and minidl.optim."""
    minidl.manual_seed(0)
    layers: list = []
    for i, o in zip(SIZES, SIZES[1:]):
        layers += [minidl.nn.Linear(i, o), minidl.nn.ReLU()]
    model = minidl.nn.Sequential(*layers[:-1])
    optimizer = minidl.optim.SGD(model.parameters(), lr=LR, momentum=MOMENTUM)
    x, y = minidl.randn(BATCH, SIZES[0]), minidl.randint(0, 10, (BATCH,))

    def step() -> minidl.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def functions_step():
    """The same step with functions alone: parameters and gradients are views of flat tensors, SGD is three operations."""
    rng = np.random.RandomState(0)
    shapes = [shape for i, o in zip(SIZES, SIZES[1:]) for shape in ((o, i), (o,))]
    flat = minidl.tensor((rng.rand(sum(int(np.prod(s)) for s in shapes)) - 0.5) * 0.25, dtype=minidl.float32)
    gradient, momentum = minidl.zeros_like(flat), minidl.zeros_like(flat)
    parameters, start = [], 0
    for shape in shapes:
        stop = start + int(np.prod(shape))
        parameters.append(flat[start:stop].view(shape).detach().requires_grad_())
        parameters[-1].grad_buffer = gradient[start:stop].view(shape)
        start = stop
    w1, b1, w2, b2, w3, b3 = parameters
    x = minidl.tensor(rng.randn(BATCH, SIZES[0]), dtype=minidl.float32)
    y = minidl.tensor(rng.randint(0, 10, BATCH))

    def step() -> minidl.Tensor:
        h = F.relu(F.linear(x, w1, b1))
        h = F.relu(F.linear(h, w2, b2))
        loss = F.cross_entropy(F.linear(h, w3, b3), y)
        loss.backward()
        with minidl.no_grad():
            momentum.mul_(MOMENTUM).add_(gradient)
            flat.sub_(momentum, alpha=LR)
        for p in parameters:
            p.grad = None
        return loss

    return step


def torch_step(threads: int):
    """The same step in PyTorch with torch.nn and torch.optim."""
    try:
        import torch
    except ImportError:
        raise SystemExit("this benchmark compares with PyTorch: pip install '.[bench]'") from None

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    layers: list = []
    for i, o in zip(SIZES, SIZES[1:]):
        layers += [torch.nn.Linear(i, o), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers[:-1])
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=MOMENTUM)
    x, y = torch.randn(BATCH, SIZES[0]), torch.randint(0, 10, (BATCH,))

    def step():
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def waited() -> int:
    """Nanoseconds that the threads of this process have waited for a processor; 0 where Linux does not tell."""
    total = 0
    for path in glob.glob("/proc/self/task/*/schedstat"):
        try:
            with open(path) as file:
                total += int(file.read().split()[1])
        except (OSError, ValueError, IndexError):
            pass
    return total


def time_round(step, steps: int) -> tuple[float, bool]:
    """Microseconds a step, and whether every thread had a processor throughout."""
    before, start = waited(), time.perf_counter()
    for _ in range(steps):
        step()
    seconds = time.perf_counter() - start
    return 1e6 * seconds / steps, waited() - before < 0.01 * 1e9 * seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--steps", type=int, default=100, help="steps a round")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    contestants = {"minidl": minidl_step(), "functions": functions_step(), "torch": torch_step(args.threads)}
    minidl.set_num_threads(args.threads)
    for step in contestants.values():
        first = float(step().detach())
        for _ in range(300):
            last = float(step().detach())
        assert last < first / 2, "the loss does not fall"
    pairs = []
    gc.collect()
    for _ in range(args.rounds):
        times = {name: time_round(step, args.steps) for name, step in contestants.items()}
        if all(clean for _, clean in times.values()):
            pairs.append({name: t for name, (t, _) in times.items()})
    if not pairs:
        raise SystemExit("no clean round: other programs kept the processors busy; try again later")
    medians = {name: statistics.median(pair[name] for pair in pairs) for name in contestants}
    ratios = {name: statistics.median(pair[name] / pair["torch"] for pair in pairs) for name in contestants}
    print(f"MLP {'-'.join(map(str, SIZES))}, batch {BATCH}, {args.threads} threads, {len(pairs)} of {args.rounds} rounds clean")
    for name, t in medians.items():
        print(f"{name:10s}{t:10.1f} us a step (median), {ratios[name]:.2f} x PyTorch (median of paired rounds; bar 0.60)")


if __name__ == "__main__":
    main()
