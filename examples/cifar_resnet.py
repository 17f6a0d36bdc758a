"""Trains a ResNet, a DenseNet or a MobileNet on CIFAR-10, or on scikit-learn's small digits where CIFAR-10 is not at hand.

The digits are 1,797 images of 8x8 grey pixels; here they become 3x32x32. On one core an epoch of CIFAR-10 takes ResNet-20
about ten minutes and the DenseNet half an hour: `--limit` takes fewer images.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import minidl
import minidl.nn.functional as F
from minidl.data import (
    CIFAR10,
    Compose,
    ConvertImageDtype,
    DataLoader,
    Normalize,
    RandomCrop,
    RandomHorizontalFlip,
    Subset,
    find_data,
)
from minidl.data.labelled_images import LabelledImages
from minidl.models import MobileNet, densenet_bc, resnet20, resnet56, resnet110
from minidl.nn import Module
from minidl.optim import SGD
from minidl.optim.lr_scheduler import OneCycleLR
from minidl.train import CSVProgressWriter, ProgressPrinter, Trainer, plot_logs

MODELS: dict[str, Callable[[], Module]] = {
    "resnet20": resnet20, "resnet56": resnet56, "resnet110": resnet110, "densenet": densenet_bc, "mobilenet": MobileNet}


def load(folder: str | None) -> tuple[LabelledImages, LabelledImages]:
    """The training and the test images, with a transform each; the training images are augmented."""
    try:
        path = find_data("cifar10", folder)
    except FileNotFoundError:
        if folder is not None:
            raise
        print("no CIFAR-10 in MINIDL_DATA: training on scikit-learn's digits")
        training, test = digits()
        augmented = Compose([RandomCrop(32, padding=4)])
    else:
        training, test = CIFAR10(path, train=True), CIFAR10(path, train=False)
        augmented = Compose([RandomCrop(32, padding=4), RandomHorizontalFlip()])
    test.transform = Compose([ConvertImageDtype(), Normalize(0.5, 0.25)])
    training.transform = Compose([augmented, test.transform])
    return training, test


def digits() -> tuple[LabelledImages, LabelledImages]:
    """scikit-learn's digits as 3x32x32 images: 1,437 for training and 360 for the test, always the same."""
    pixels, labels = load_digits(return_X_y=True)
    images = np.rint(pixels * (255 / 16)).astype(np.uint8).reshape(-1, 1, 8, 8)
    images = images.repeat(3, 1).repeat(4, 2).repeat(4, 3)
    order = np.random.RandomState(0).permutation(len(images))
    first, last = order[:1437], order[1437:]
    return LabelledImages(images[first], labels[first]), LabelledImages(images[last], labels[last])


def error(output: minidl.Tensor, target: minidl.Tensor) -> minidl.Tensor:
    """The share of wrong answers."""
    return (output.argmax(1) != target).float().mean()


def train(model: Module, training: Subset, test: Subset, args: argparse.Namespace, log: Path) -> float:
    """Train, write the losses to a log, and return the error on the test images."""
    loader, test_loader = DataLoader(training, args.batch_size, shuffle=True), DataLoader(test, 100)
    optimizer = SGD(model.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=1e-4)
    schedule = OneCycleLR(optimizer, args.lr, total_steps=args.epochs * len(loader))
    log.unlink(missing_ok=True)
    writers = [ProgressPrinter(num_epochs=args.epochs), CSVProgressWriter(log, freq=None)]
    trainer = Trainer(model, (F.cross_entropy, error), optimizer, writers, schedulers=schedule)
    for _ in range(args.epochs):
        for minibatch in loader:
            trainer.train_minibatch(minibatch)
        trainer.summarize_training_progress()
    wrong = sum(trainer.test_minibatch(minibatch) * len(minibatch[1]) for minibatch in test_loader)
    trainer.summarize_test_progress()
    return wrong / len(test)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=list(MODELS), default="resnet20", help="which network (default resnet20)")
    parser.add_argument("--depth", type=int, default=40, help="layers of the DenseNet, 6 n + 4 (default 40)")
    parser.add_argument("--data", help="folder of data sets, with CIFAR-10 in its folder cifar10 (default MINIDL_DATA)")
    parser.add_argument("--limit", type=int, help="train on so many images only, and test on no more")
    parser.add_argument("--epochs", type=int, default=10, help="passes over the training images (default 10)")
    parser.add_argument("--batch-size", type=int, default=64, help="images a step (default 64)")
    parser.add_argument("--lr", type=float, default=0.1, help="highest learning rate of the one-cycle schedule (default 0.1)")
    parser.add_argument("--seed", type=int, default=0, help="of the parameters, the order and the augmentation (default 0)")
    parser.add_argument("--output", default="cifar_resnet.png", help="where the loss curve goes (default cifar_resnet.png)")
    args = parser.parse_args(argv)
    minidl.manual_seed(args.seed)
    training, test = (Subset(part, range(len(part))[:args.limit]) for part in load(args.data))
    model = densenet_bc(args.depth, growth=12) if args.model == "densenet" else MODELS[args.model]()
    print(minidl.summary(model, (1, 3, 32, 32)))
    log = Path(args.output).with_suffix(".csv")
    start = time.perf_counter()
    accuracy = 100 * (1 - train(model, training, test, args, log))
    print(f"\ntest accuracy {accuracy:.2f}% on {len(test)} images after {time.perf_counter() - start:.1f} s")
    print(f"loss curve: {plot_logs([log], args.output, by='epochs')}")


if __name__ == "__main__":
    main()
