"""The part of each rank of a data set."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..tensor.random import Generator
from .sampler import Sampler


class DistributedSampler(Sampler[int]):
    """Every num_replicas-th index of an order that is the same on all ranks.

    Call `set_epoch(epoch)` before each epoch: the order depends on (seed, epoch) only.

    Args:
        dataset: of which the length counts.
        num_replicas: number of ranks, as `comm.size`.
        rank: this one's number, as `comm.rank`.
        shuffle: a new random order each epoch, instead of 0, 1, ...
        seed: the same on all ranks.
        drop_last: leave out the last samples that do not make one for each rank.
        pad: repeat the first samples so that all ranks get the same number, as training needs it where each step is
            taken together. pad=False gives each sample to exactly one rank, as evaluation needs it; some ranks then have
            one sample less.

    Raises:
        ValueError: if num_replicas or rank is missing or out of range, or with drop_last=True and pad=False together.
    """

    def __init__(self, dataset: Any, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True,
                 seed: int = 0, drop_last: bool = False, *, pad: bool = True):
        if num_replicas is None or rank is None:
            raise ValueError(f"DistributedSampler expected num_replicas and rank, got {num_replicas} and {rank}; give it "
                             f"comm.size and comm.rank")
        if not 0 <= rank < num_replicas:
            raise ValueError(f"DistributedSampler expected a rank in [0, {num_replicas - 1}], got {rank}")
        if drop_last and not pad:
            raise ValueError("DistributedSampler got drop_last=True, which leaves samples out, and pad=False, which gives each "
                             "sample to one rank; choose one of them")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        self.pad = pad
        self.epoch = 0

    @property
    def total_size(self) -> int:
        """Number of samples of all ranks together, repeated ones counted."""
        n = len(self.dataset)
        if not self.pad:
            return n
        return (n // self.num_replicas if self.drop_last else math.ceil(n / self.num_replicas)) * self.num_replicas

    @property
    def num_samples(self) -> int:
        """Number of samples of this rank."""
        return len(range(self.rank, self.total_size, self.num_replicas))

    def __iter__(self) -> Iterator[int]:
        n = len(self.dataset)
        order = Generator().manual_seed(self.seed << 64 | self.epoch).numpy.permutation(n) if self.shuffle else np.arange(n)
        return iter(np.resize(order, self.total_size)[self.rank::self.num_replicas].tolist())

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch whose order comes next."""
        self.epoch = epoch

    def state_dict(self) -> dict[str, Any]:
        """The epoch, and what its order depends on beside it."""
        return {"epoch": self.epoch, "seed": self.seed, "num_replicas": self.num_replicas}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a state of state_dict() of any rank.

        Raises:
            ValueError: if it was saved with another number of ranks, which share the samples out differently.
        """
        if state_dict["num_replicas"] != self.num_replicas:
            raise ValueError(f"DistributedSampler for {self.num_replicas} ranks got a state of {state_dict['num_replicas']} "
                             f"ranks; resume with as many, or at the start of an epoch with a fresh sampler")
        self.epoch, self.seed = state_dict["epoch"], state_dict["seed"]
