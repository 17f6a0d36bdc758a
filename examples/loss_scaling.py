"""Shows what loss scaling is for: one model is trained in float32, and in float16 with and without it.

The loss has a small weight, as auxiliary losses have. Its gradients are then below 6e-8, the smallest float16 number: without
scaling they vanish and nothing is learned. The data are scikit-learn's 1,797 handwritten digits of 8x8 pixels.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import minidl
import minidl.nn.functional as F
from minidl.amp import GradScaler, autocast
from minidl.data import DataLoader, TensorDataset
from minidl.models import MLP
from minidl.optim import SGD
from minidl.train import CSVProgressWriter, plot_logs


def train(half: bool, scaling: bool, args: argparse.Namespace, log: Path) -> float:
    """Train one way, write the losses to a log, and return the test accuracy."""
    minidl.manual_seed(args.seed)
    images, labels = load_digits(return_X_y=True)
    order = np.random.RandomState(args.seed).permutation(len(images))
    x, y = minidl.tensor(images[order] / 16, dtype=minidl.float32), minidl.tensor(labels[order])
    loader = DataLoader(TensorDataset(x[:1437], y[:1437]), batch_size=32, shuffle=True)
    model = MLP([64, 128, 10])
    optimizer = SGD(model.named_parameters(), lr=args.lr / args.weight)
    scaler = GradScaler(enabled=scaling, growth_interval=100)
    region = autocast(dtype=minidl.float16, enabled=half)
    log.unlink(missing_ok=True)
    writer = CSVProgressWriter(log, freq=None)
    for _ in range(args.epochs):
        for inputs, targets in loader:
            optimizer.zero_grad()
            with region:
                loss = F.cross_entropy(model(inputs), targets)
            scaler.scale(loss * args.weight).backward()
            scaler.step(optimizer)
            scaler.update()
            writer.update_training(len(inputs), loss.item() * len(inputs))
        writer.write_training_summary()
    with minidl.no_grad(), region:
        return (model(x[1437:]).argmax(1) == y[1437:]).float().mean().item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=20, help="passes over the training data (default 20)")
    parser.add_argument("--lr", type=float, default=0.2, help="learning rate, which is divided by the weight (default 0.2)")
    parser.add_argument("--weight", type=float, default=1e-7, help="of the loss (default 1e-7)")
    parser.add_argument("--seed", type=int, default=0, help="of the split, the parameters and the order (default 0)")
    parser.add_argument("--output", default="loss_scaling.png", help="where the loss curves go (default loss_scaling.png)")
    args = parser.parse_args()
    logs = []
    print(f"{'':24s}test accuracy")
    for name, half, scaling in (("float32", False, False), ("float16-scaled", True, True), ("float16-unscaled", True, False)):
        logs.append(Path(args.output).with_name(f"{name}.csv"))
        print(f"{name:24s}{100 * train(half, scaling, args, logs[-1]):12.2f}%", flush=True)
    print(f"loss curves: {plot_logs(logs, args.output, by='epochs')}")


if __name__ == "__main__":
    main()
