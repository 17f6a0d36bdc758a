"""Trains a DCGAN on scikit-learn's digits and checks what it draws with a classifier that has seen real digits only.

Generator and discriminator take turns, each with the loss that binary cross-entropy gives it; the picture shows real digits,
generated ones, and both losses.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import minidl
import minidl.nn.functional as F
from minidl.data import DataLoader, TensorDataset
from minidl.models import MLP, DCGANDiscriminator, DCGANGenerator
from minidl.optim import Adam

LATENT = 32


def load() -> tuple[minidl.Tensor, minidl.Tensor]:
    """(images (1797, 1, 8, 8) in [-1, 1], labels)."""
    images, labels = load_digits(return_X_y=True)
    return minidl.tensor(images.reshape(-1, 1, 8, 8) / 8 - 1, dtype=minidl.float32), minidl.tensor(labels)


def noise(n: int) -> minidl.Tensor:
    return minidl.randn(n, LATENT, 1, 1)


def train(generator: DCGANGenerator, discriminator: DCGANDiscriminator, images, args: argparse.Namespace) -> list[tuple]:
    """Let both play; returns their losses (discriminator, generator) at each step."""
    loader = DataLoader(TensorDataset(images), batch_size=args.batch_size, shuffle=True, drop_last=True)
    critic, artist = (Adam(model.parameters(), lr=args.lr, betas=(0.5, 0.999)) for model in (discriminator, generator))
    bce = F.binary_cross_entropy_with_logits
    real, fake = minidl.ones(args.batch_size), minidl.zeros(args.batch_size)
    losses = []
    start = time.perf_counter()
    for epoch in range(args.epochs):
        for batch, in loader:
            drawn = generator(noise(args.batch_size))
            critic.zero_grad()
            loss = bce(discriminator(batch), real) + bce(discriminator(drawn.detach()), fake)
            loss.backward()
            critic.step()
            artist.zero_grad()
            fooled = bce(discriminator(drawn), real)
            fooled.backward()
            artist.step()
            losses.append((loss.item(), fooled.item()))
        if (epoch + 1) % 10 == 0:
            recent = np.mean(losses[-len(loader):], axis=0)
            print(f"epoch {epoch + 1:3d}: discriminator {recent[0]:.3f}, generator {recent[1]:.3f}, "
                  f"{time.perf_counter() - start:.0f} s", flush=True)
    return losses


def sample(generator: DCGANGenerator, n: int) -> minidl.Tensor:
    generator.eval()
    with minidl.no_grad():
        return generator(noise(n))


def fit_classifier(images, labels, epochs: int = 10) -> MLP:
    """A judge: a classifier of real digits."""
    judge = MLP([64, 64, 10])
    optimizer = Adam(judge.parameters(), lr=5e-3)
    for _ in range(epochs):
        for x, y in DataLoader(TensorDataset(images.flatten(1), labels), batch_size=64, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(judge(x), y).backward()
            optimizer.step()
    return judge


def assess(judge: MLP, images) -> tuple[float, minidl.Tensor]:
    """(mean probability that the judge gives its answer, share of each digit among the answers)."""
    with minidl.no_grad():
        probability = F.softmax(judge(images.flatten(1)), 1)
    return probability.amax(1).mean().item(), minidl.bincount(probability.argmax(1), minlength=10) / len(images)


def report(judge: MLP, real, drawn) -> float:
    """Compare drawn images with real ones, and with real ones whose pixels are shuffled, of which the judge is not so sure;
    returns its confidence in the drawn ones."""
    shuffled = real.flatten(1)[:, minidl.randperm(64)].reshape(real.shape)
    print(f"\n{'':10s}{'mean':>7s}{'std':>7s}{'confidence':>12s}   share of each digit 0-9 (%)")
    for name, images in (("real", real), ("shuffled", shuffled), ("generated", drawn)):
        confidence, shares = assess(judge, images)
        print(f"{name:10s}{images.mean().item():7.3f}{images.std().item():7.3f}{100 * confidence:11.1f}%  "
              + "".join(f"{100 * share:5.0f}" for share in shares.tolist()))
    return confidence


def draw(real, drawn, losses: list[tuple], output: str) -> Path:
    from matplotlib.figure import Figure
    figure = Figure(figsize=(13, 4.2), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    for axes, images, title in ((left, real, "real"), (middle, drawn, "generated")):
        framed = F.pad(images[:100], (1, 1, 1, 1), value=-1.0)
        grid = framed.reshape(10, 10, 10, 10).permute(0, 2, 1, 3).reshape(100, 100)
        axes.imshow(grid.numpy(), cmap="gray_r", vmin=-1, vmax=1)
        axes.set(title=title, xticks=[], yticks=[])
    right.plot(losses, linewidth=0.6, label=("discriminator", "generator"))
    right.set(xlabel="steps", ylabel="loss")
    right.legend()
    figure.savefig(output)
    return Path(output)


def main(argv: list[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=100, help="passes over the images (default 100)")
    parser.add_argument("--batch-size", type=int, default=64, help="images a step (default 64)")
    parser.add_argument("--lr", type=float, default=2e-4, help="learning rate of both (default 2e-4)")
    parser.add_argument("--width", type=int, default=32, help="channels at half the image's size (default 32)")
    parser.add_argument("--seed", type=int, default=0, help="of parameters, order and noise (default 0)")
    parser.add_argument("--min-confidence", type=float, default=0.0, help="fail if the judge is less sure than this (%%)")
    parser.add_argument("--output", default="gan_digits.png", help="where the picture goes (default gan_digits.png)")
    args = parser.parse_args(argv)
    minidl.manual_seed(args.seed)
    images, labels = load()
    generator, discriminator = DCGANGenerator(LATENT, args.width), DCGANDiscriminator(args.width)
    losses = train(generator, discriminator, images, args)
    drawn = sample(generator, 1000)
    confidence = report(fit_classifier(images, labels), images, drawn)
    print(f"\npicture: {draw(images, drawn, losses, args.output)}")
    if 100 * confidence < args.min_confidence:
        raise SystemExit(f"confidence below the {args.min_confidence:g}% asked for")
    return confidence


if __name__ == "__main__":
    main()
