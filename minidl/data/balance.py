"""Samplers that even out classes of different sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..tensor.random import Generator
from .sampler import Sampler, check_count


class ClassBalancedSampler(Sampler[int]):
    """Indices drawn so that each class comes equally often on average: small classes are repeated.

    Args:
        labels: the class of each sample of the data set, integers or strings.
        num_samples: how many indices an epoch has, by default as many as there are labels.
        generator: by default the run-time generator.

    Raises:
        ValueError: if there are no labels, or num_samples is not positive.
    """

    def __init__(self, labels: Sequence[Any], num_samples: int | None = None, *, generator: Generator | None = None):
        self._members = _members("ClassBalancedSampler", labels)
        self.num_samples = len(labels) if num_samples is None else num_samples
        check_count("ClassBalancedSampler", self.num_samples)
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        random = self._random()
        sizes = np.array([len(members) for members in self._members])
        classes = random.integers(0, len(sizes), self.num_samples)
        places = random.integers(0, sizes[classes])
        for which, place in zip(classes.tolist(), places.tolist()):
            yield int(self._members[which][place])

    def __len__(self) -> int:
        return self.num_samples


class DownSampler(Sampler[int]):
    """All samples of the rarest class and as many of each other one, chosen anew each epoch, in random order.

    Args:
        labels: the class of each sample of the data set, integers or strings.
        ratio: how many times the size of the rarest class the other classes may have; at least 1.
        generator: by default the run-time generator.

    Raises:
        ValueError: if there are no labels, or ratio is below 1.
    """

    def __init__(self, labels: Sequence[Any], ratio: float = 1.0, *, generator: Generator | None = None):
        self._members = _members("DownSampler", labels)
        if not ratio >= 1:
            raise ValueError(f"DownSampler expected a ratio of at least 1, got {ratio}")
        self.ratio = ratio
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        random, limit = self._random(), self._limit()
        kept = np.concatenate([random.permutation(members)[:limit] for members in self._members])
        return iter(random.permutation(kept).tolist())

    def __len__(self) -> int:
        limit = self._limit()
        return sum(min(len(members), limit) for members in self._members)

    def _limit(self) -> int:
        return int(self.ratio * min(len(members) for members in self._members))


def _members(name: str, labels: Any) -> list[np.ndarray]:
    """The indices of each class."""
    values = np.asarray(getattr(labels, "array", labels))
    if values.ndim != 1 or not len(values):
        raise ValueError(f"{name} expected one label per sample, got labels of shape {values.shape}")
    classes = np.unique(values, return_inverse=True)[1]
    order = np.argsort(classes, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(classes[order])) + 1)
