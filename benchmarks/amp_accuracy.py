"""What mixed precision costs in accuracy: MNIST's LeNet and the character GPT in float32, O1 and O2, with paired seeds.

Runs of one seed share parameters and batches. Printed are the means over the seeds, and the mean and standard error of the
differences to float32. Bars: 0.3 points of test accuracy, 0.02 nats of validation loss, mean of five seeds.

    python benchmarks/amp_accuracy.py [--tasks mnist gpt] [--seeds 5] [--epochs 5] [--steps 2000] [--dtypes float16]

On two shared cores the five runs of a seed take a minute an epoch of LeNet and half an hour a thousand steps of the GPT.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import minidl
import minidl.nn.functional as F
from minidl import amp
from minidl.data import MNIST, CharVocabulary, TextWindows, find_data, read_text
from minidl.models import GPT, LeNet
from minidl.nn.utils import clip_grad_norm_
from minidl.optim import SGD, AdamW
from minidl.optim.lr_scheduler import OneCycleLR, cosine_with_warmup


class Digits:
    """LeNet on 8,000 of MNIST's test images; the score is the accuracy in percent on the other 2,000."""

    bar, unit = 0.3, "points"

    def __init__(self, args: argparse.Namespace):
        self.epochs, self.batch_size = args.epochs, 64
        images = MNIST(find_data("mnist", args.data), train=False)
        order = np.random.RandomState(0).permutation(len(images))
        pixels = np.stack([np.asarray(images[i][0], np.float32).reshape(1, 28, 28) for i in order])
        x = (pixels / np.float32(255) - np.float32(0.1307)) / np.float32(0.3081)
        y = np.array([int(images[i][1]) for i in order])
        split = 4 * len(x) // 5
        self.training, self.test = (x[:split], y[:split]), (x[split:], y[split:])

    def start(self) -> tuple[Any, Any, Any]:
        model = LeNet()
        optimizer = SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
        return model, optimizer, OneCycleLR(optimizer, 0.05, total_steps=self.epochs * self.batches())

    def batches(self) -> int:
        return len(self.training[0]) // self.batch_size

    def losses(self, model: Any, seed: int) -> Iterable[Any]:
        """The loss of each training batch."""
        random = np.random.RandomState(seed)
        for _ in range(self.epochs):
            order = random.permutation(len(self.training[0]))
            for i in range(self.batches()):
                x, y = (minidl.from_numpy(part[order[i * self.batch_size:(i + 1) * self.batch_size]])
                        for part in self.training)
                yield F.cross_entropy(model(x), y)

    def score(self, model: Any) -> float:
        x, y = self.test
        right = sum(int((model(minidl.from_numpy(x[i:i + 500])).numpy().argmax(1) == y[i:i + 500]).sum())
                    for i in range(0, len(x), 500))
        return 100 * right / len(x)


class Characters:
    """A GPT on the characters of tinyshakespeare; the score is the loss on its last tenth, in nats a character."""

    bar, unit = 0.02, "nats"

    def __init__(self, args: argparse.Namespace):
        self.steps, self.batch_size, self.context = args.steps, 12, 64
        text = read_text(find_data("text/tinyshakespeare.txt", args.data))
        vocabulary = CharVocabulary(text)
        self.characters = len(vocabulary)
        tokens = vocabulary.encode(text)
        split = len(tokens) * 9 // 10
        self.training = TextWindows(tokens[:split], self.context, stride=1)
        self.test = TextWindows(tokens[split:], self.context)

    def start(self) -> tuple[Any, Any, Any]:
        model = GPT(self.characters, self.context, layers=4, heads=4, width=128)
        groups = [{"params": [p for p in model.parameters() if p.ndim >= 2], "weight_decay": 0.1},
                  {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0}]
        optimizer = AdamW(groups, lr=1e-3, betas=(0.9, 0.99))
        return model, optimizer, cosine_with_warmup(optimizer, min(100, self.steps // 2), self.steps, 1e-4)

    def losses(self, model: Any, seed: int) -> Iterable[Any]:
        """The loss of each training batch."""
        random = np.random.RandomState(seed)
        for _ in range(self.steps):
            yield self._loss(model, self.training[random.randint(len(self.training), size=self.batch_size)], "mean")

    def score(self, model: Any) -> float:
        total = sum(self._loss(model, self.test[i:i + 64], "sum").item() for i in range(0, len(self.test), 64))
        return total / (len(self.test) * self.context)

    def _loss(self, model: Any, windows: Any, reduction: str) -> Any:
        x, y = map(minidl.from_numpy, windows)
        return F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction=reduction)


TASKS: dict[str, Callable[[argparse.Namespace], Any]] = {"mnist": Digits, "gpt": Characters}


def train(task: Any, level: str, dtype: str, seed: int) -> float:
    """The score of a model trained from a seed."""
    minidl.manual_seed(seed)
    model, optimizer, schedule = task.start()
    model, optimizer = amp.initialize(model, optimizer, level, dtype=getattr(minidl, dtype))
    model.train()
    for loss in task.losses(model, seed):
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        clip_grad_norm_(amp.master_params(optimizer), 1.0)
        optimizer.step()
        schedule.step()
    model.eval()
    with minidl.no_grad():
        return task.score(model)


def compare(name: str, task: Any, args: argparse.Namespace) -> None:
    runs = [("O0", "float16")] + [(level, dtype) for dtype in args.dtypes for level in ("O1", "O2")]
    scores: dict[tuple[str, str], list[float]] = {run: [] for run in runs}
    for seed in range(args.seeds):
        for level, dtype in runs:
            start = time.perf_counter()
            score = train(task, level, dtype, seed)
            scores[level, dtype].append(score)
            label = "float32" if level == "O0" else f"{level} {dtype}"
            print(f"# {name} seed {seed} {label}: {score:.4f} ({time.perf_counter() - start:.0f} s)", flush=True)
    base = scores["O0", "float16"]
    print(f"{name:6s}{'float32':14s}{statistics.mean(base):10.4f}")
    for run in runs[1:]:
        differences = [score - other for score, other in zip(scores[run], base)]
        mean = statistics.mean(differences)
        error = statistics.stdev(differences) / math.sqrt(len(differences)) if len(differences) > 1 else math.nan
        print(f"{name:6s}{' '.join(run):14s}{statistics.mean(scores[run]):10.4f}  difference {mean:+.4f} +- {error:.4f} "
              f"{task.unit}{'' if abs(mean) <= task.bar else '  MISSED'}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--dtypes", nargs="+", choices=("float16", "bfloat16"), default=["float16", "bfloat16"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=5, help="of MNIST (default 5)")
    parser.add_argument("--steps", type=int, default=2000, help="of the GPT (default 2000)")
    parser.add_argument("--data", help="the folder of data sets (default: the environment variable MINIDL_DATA)")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    minidl.set_num_threads(args.threads)
    for name in args.tasks:
        compare(name, TASKS[name](args), args)


if __name__ == "__main__":
    main()
