"""Random numbers of an epoch: every batch has a seed of its own, whoever loads it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..tensor.random import Generator, default_generator

# Philox keys have 128 bits: the upper half is the epoch's seed, the lower half says what of the epoch is drawn.
_HALF = 64
_ORDER = (1 << _HALF) - 1


def draw_seed(generator: Generator) -> int:
    """The seed of an epoch, below 2^62 so that it fits an int64 with a worker's number added."""
    return int(generator.numpy.integers(1 << 62))


def order_generator(seed: int) -> Generator:
    """From which the samplers of an epoch draw."""
    return Generator().manual_seed(seed << _HALF | _ORDER)


def batch_seed(seed: int, number: int, worker: int = 0) -> int:
    """The seed of a batch of an epoch; of a stream, of which each worker counts its own batches."""
    return seed << _HALF | worker << 40 | number


@contextmanager
def drawing_from(generator: Generator) -> Iterator[None]:
    """This thread's default run-time generator gives the numbers of another one for a while, and goes on afterwards."""
    default = default_generator()
    kept = default.__dict__.copy()
    default.__dict__.update(generator.__dict__)
    try:
        yield
    finally:
        generator.__dict__.update(default.__dict__)
        default.__dict__.clear()
        default.__dict__.update(kept)
