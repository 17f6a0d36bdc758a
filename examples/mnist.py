"""Trains LeNet on the handwritten digits of MNIST and prints how many of the test images it gets right.

Where only the 10,000 test images are at hand, 8,000 of them become the training set and 2,000 the test set, always the same.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import minidl
import minidl.nn.functional as F
from minidl.data import MNIST, Compose, ConvertImageDtype, DataLoader, Dataset, Normalize, RandomShift, Subset, find_data
from minidl.models import LeNet
from minidl.optim import SGD
from minidl.optim.lr_scheduler import OneCycleLR
from minidl.train import CSVProgressWriter, ProgressPrinter, Trainer, plot_logs


def load(folder: Path, shift: int) -> tuple[Dataset, Dataset]:
    """The training set, whose images move by up to `shift` pixels each time they are seen, and the test set."""
    plain = Compose([ConvertImageDtype(), Normalize(0.1307, 0.3081)])
    shifted = Compose([RandomShift(shift), plain])
    test = MNIST(folder, train=False, transform=plain)
    try:
        return MNIST(folder, train=True, transform=shifted), test
    except FileNotFoundError:
        order = np.random.RandomState(0).permutation(len(test)).tolist()
        split = 4 * len(test) // 5
        print(f"no training files in {folder}: training on {split} of the {len(test)} test images, testing on the others")
        return Subset(MNIST(folder, train=False, transform=shifted), order[:split]), Subset(test, order[split:])


def error(output: minidl.Tensor, target: minidl.Tensor) -> minidl.Tensor:
    """The share of wrong answers."""
    return (output.argmax(1) != target).float().mean()


def test_error(trainer: Trainer, loader: DataLoader) -> float:
    """The share of wrong answers in the whole test set."""
    wrong = sum(trainer.test_minibatch(minibatch) * len(minibatch[1]) for minibatch in loader)
    trainer.summarize_test_progress()
    return wrong / len(loader.dataset)


def train(training: Dataset, test: Dataset, args: argparse.Namespace, log: Path) -> float:
    """Train, write the losses to a log, and return the error on the test set."""
    loader, test_loader = DataLoader(training, args.batch_size, shuffle=True), DataLoader(test, 500)
    model = LeNet()
    optimizer = SGD(model.parameters(), lr=args.lr, momentum=0.9, nesterov=True)
    schedule = OneCycleLR(optimizer, args.lr, total_steps=args.epochs * len(loader))
    log.unlink(missing_ok=True)
    writers = [ProgressPrinter(num_epochs=args.epochs), CSVProgressWriter(log, freq=None)]
    trainer = Trainer(model, (F.cross_entropy, error), optimizer, writers, schedulers=schedule)
    for _ in range(args.epochs):
        for minibatch in loader:
            trainer.train_minibatch(minibatch)
        trainer.summarize_training_progress()
        last = test_error(trainer, test_loader)
    return last


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder of data sets, with MNIST's files in its folder mnist (default MINIDL_DATA)")
    parser.add_argument("--epochs", type=int, default=10, help="passes over the training data (default 10)")
    parser.add_argument("--batch-size", type=int, default=64, help="samples a step (default 64)")
    parser.add_argument("--lr", type=float, default=0.1, help="highest learning rate of the one-cycle schedule (default 0.1)")
    parser.add_argument("--no-shift", action="store_true", help="train on the images as they are, not moved by up to 2 pixels")
    parser.add_argument("--seed", type=int, default=0, help="of the parameters, the order and the shifts (default 0)")
    parser.add_argument("--min-accuracy", type=float, default=0.0, help="fail if the run ends below this percentage")
    parser.add_argument("--output", default="mnist.png", help="where the loss curve goes (default mnist.png)")
    args = parser.parse_args(argv)
    minidl.manual_seed(args.seed)
    training, test = load(find_data("mnist", args.data), 0 if args.no_shift else 2)
    log = Path(args.output).with_suffix(".csv")
    start = time.perf_counter()
    accuracy = 100 * (1 - train(training, test, args, log))
    print(f"\ntest accuracy {accuracy:.2f}% after {time.perf_counter() - start:.1f} s")
    print(f"loss curve: {plot_logs([log], args.output, by='epochs', log_scale=True)}")
    if accuracy < args.min_accuracy:
        raise SystemExit(f"test accuracy below the {args.min_accuracy:g}% asked for")


if __name__ == "__main__":
    main()
