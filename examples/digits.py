"""Trains a digits classifier twice, in float32 and in float16 with loss scaling, and compares the two.

The data are scikit-learn's 1,797 handwritten digits of 8x8 pixels. Everything is written with minidl's functions: the
model, the loop, SGD with momentum on float32 master weights, and a dynamic loss scale.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.datasets import load_digits

import minidl
import minidl.nn.functional as F

SIZES = (64, 128, 128, 10)


def load(seed: int) -> tuple[minidl.Tensor, ...]:
    """Training and test images in [0, 1] and labels: 1,437 and 360 samples in a fixed random split."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.RandomState(seed).permutation(len(images))
    x, y = minidl.tensor(images[order] / 16, dtype=minidl.float32), minidl.tensor(labels[order])
    return x[:1437], y[:1437], x[1437:], y[1437:]


def initial_parameters() -> list[minidl.Tensor]:
    """Weights and biases drawn uniformly from +-1/sqrt(fan in), in float32."""
    parameters = []
    for fan_in, fan_out in zip(SIZES, SIZES[1:]):
        bound = fan_in ** -0.5
        parameters += [(minidl.rand(fan_out, fan_in) * 2 - 1) * bound, (minidl.rand(fan_out) * 2 - 1) * bound]
    return parameters


def model(x: minidl.Tensor, parameters: list[minidl.Tensor]) -> minidl.Tensor:
    """Class scores (N, 10) of images (N, 64)."""
    layers = list(zip(parameters[::2], parameters[1::2]))
    for weight, bias in layers[:-1]:
        x = F.relu(F.linear(x, weight, bias))
    return F.linear(x, *layers[-1])


def train(dtype, args: argparse.Namespace, data: tuple[minidl.Tensor, ...]) -> tuple[list[float], float]:
    """Train in one dtype; returns the loss of each epoch and the test accuracy."""
    train_x, train_y, test_x, test_y = data
    minidl.manual_seed(args.seed)
    masters = initial_parameters()
    momenta = [minidl.zeros_like(p) for p in masters]
    parameters = [p.to(dtype, copy=True).requires_grad_() for p in masters]
    half = dtype != minidl.float32
    scale, good_steps = (2.0 ** 12 if half else 1.0), 0
    losses = []
    for epoch in range(args.epochs):
        total = 0.0
        order = minidl.randperm(len(train_x))
        for batch in order.split(args.batch_size):
            loss = F.cross_entropy(model(train_x[batch].to(dtype), parameters), train_y[batch])
            (loss.float() * scale).backward()
            total += loss.item() * len(batch)
            with minidl.no_grad():
                gradients = [p.grad.float() / scale for p in parameters]
                finite = all(bool(g.isfinite().all()) for g in gradients)
                if finite:
                    for p, master, momentum, g in zip(parameters, masters, momenta, gradients):
                        momentum.mul_(0.9).add_(g)
                        master.sub_(momentum, alpha=args.lr)
                        p.copy_(master)
                for p in parameters:
                    p.grad = None
            good_steps = good_steps + 1 if finite else 0
            if half and not finite:
                scale /= 2
            elif half and good_steps % 200 == 0:
                scale *= 2
        losses.append(total / len(train_x))
        if epoch % 10 == 9 or epoch == args.epochs - 1:
            print(f"  epoch {epoch + 1:3d}: loss {losses[-1]:.4f}" + (f", loss scale {scale:g}" if half else ""))
    with minidl.no_grad():
        predicted = model(test_x.to(dtype), parameters).argmax(1)
    return losses, (predicted == test_y).float().mean().item()


def plot(curves: dict[str, list[float]], path: str) -> None:
    """Write the loss curves as a picture."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    for name, losses in curves.items():
        plt.plot(range(1, len(losses) + 1), losses, label=name)
    plt.xlabel("epoch")
    plt.ylabel("training loss (cross-entropy, nats)")
    plt.yscale("log")
    plt.legend()
    plt.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=40, help="passes over the training data (default 40)")
    parser.add_argument("--batch-size", type=int, default=32, help="samples a step (default 32)")
    parser.add_argument("--lr", type=float, default=0.05, help="learning rate (default 0.05)")
    parser.add_argument("--seed", type=int, default=0, help="of the split, the parameters and the order (default 0)")
    parser.add_argument("--min-accuracy", type=float, default=0.0, help="fail if a run ends below this percentage")
    parser.add_argument("--output", default="digits.png", help="where the loss curves go (default digits.png)")
    args = parser.parse_args()
    data = load(args.seed)
    curves, rows = {}, []
    for dtype in (minidl.float32, minidl.float16):
        print(f"training in {dtype}")
        start = time.perf_counter()
        curves[str(dtype)], accuracy = train(dtype, args, data)
        rows.append((str(dtype), accuracy, time.perf_counter() - start))
    print(f"\n{'dtype':10s}{'test accuracy':>15s}{'seconds':>10s}")
    for name, accuracy, seconds in rows:
        print(f"{name:10s}{100 * accuracy:14.2f}%{seconds:10.1f}")
    plot(curves, args.output)
    print(f"loss curves: {args.output}")
    if any(100 * accuracy < args.min_accuracy for _, accuracy, _ in rows):
        raise SystemExit(f"test accuracy below the {args.min_accuracy:g}% asked for")


if __name__ == "__main__":
    main()
