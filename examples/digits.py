"""Trains a digits classifier twice, in float32 and in float16 with loss scaling, and compares the two.

The data are scikit-learn's 1,797 handwritten digits of 8x8 pixels. A Trainer runs the model; float16 parameters have
float32 masters in the optimizer, and the loss is scaled so that small gradients do not vanish in float16.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import minidl
import minidl.nn.functional as F
from minidl.amp import GradScaler
from minidl.data import MinibatchSource
from minidl.models import MLP
from minidl.optim import SGD
from minidl.train import CSVProgressWriter, DataUnit, ProgressPrinter, Trainer, plot_logs, training_session


def load(seed: int, dtype) -> tuple[tuple, tuple]:
    """(images in [0, 1], labels) for training and for the test: 1,437 and 360 samples in a fixed random split."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.RandomState(seed).permutation(len(images))
    x, y = minidl.tensor(images[order] / 16, dtype=dtype), minidl.tensor(labels[order])
    return (x[:1437], y[:1437]), (x[1437:], y[1437:])


def error(output, target):
    """The share of wrong answers."""
    return (output.argmax(1) != target).float().mean()


def train(dtype, args: argparse.Namespace, log: Path) -> float:
    """Train in one dtype, write the losses to a log, and return the test accuracy."""
    minidl.manual_seed(args.seed)
    training, (test_x, test_y) = load(args.seed, dtype)
    model = MLP([64, 128, 128, 10]).to(dtype)
    optimizer = SGD(model.parameters(), lr=args.lr, momentum=0.9)
    log.unlink(missing_ok=True)
    writers = [ProgressPrinter(tag="Training", num_epochs=args.epochs), CSVProgressWriter(log, freq=None)]
    trainer = Trainer(model, (F.cross_entropy, error), optimizer, writers,
                      scaler=GradScaler(init_scale=2.0 ** 12, growth_interval=200) if dtype == minidl.float16 else None)
    source = MinibatchSource(training, seed=args.seed)
    training_session(trainer, source, args.batch_size, max_epochs=args.epochs, progress_frequency=(1, DataUnit.sweep)).train()
    return 1 - trainer.test_minibatch((test_x, test_y))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=40, help="passes over the training data (default 40)")
    parser.add_argument("--batch-size", type=int, default=32, help="samples a step (default 32)")
    parser.add_argument("--lr", type=float, default=0.05, help="learning rate (default 0.05)")
    parser.add_argument("--seed", type=int, default=0, help="of the split, the parameters and the order (default 0)")
    parser.add_argument("--min-accuracy", type=float, default=0.0, help="fail if a run ends below this percentage")
    parser.add_argument("--output", default="digits.png", help="where the loss curves go (default digits.png)")
    args = parser.parse_args()
    rows, logs = [], []
    for dtype in (minidl.float32, minidl.float16):
        print(f"training in {dtype}")
        start = time.perf_counter()
        logs.append(Path(args.output).with_name(f"digits-{dtype}.csv"))
        rows.append((str(dtype), train(dtype, args, logs[-1]), time.perf_counter() - start))
    print(f"\n{'dtype':10s}{'test accuracy':>15s}{'seconds':>10s}")
    for name, accuracy, seconds in rows:
        print(f"{name:10s}{100 * accuracy:14.2f}%{seconds:10.1f}")
    print(f"loss curves: {plot_logs(logs, args.output, by='epochs', log_scale=True)}")
    if any(100 * accuracy < args.min_accuracy for _, accuracy, _ in rows):
        raise SystemExit(f"test accuracy below the {args.min_accuracy:g}% asked for")


if __name__ == "__main__":
    main()
