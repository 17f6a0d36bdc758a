"""One epoch of a DataLoader: where it stands, in which order it goes, and who loads its batches."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ..tensor.random import Generator
from .seeds import batch_seed, drawing_from, order_generator
from .worker import Exhausted, Loading, Reply, Setup, Task


@dataclass
class Epoch:
    """Where an epoch stands, and what it began with.

    Attributes:
        number: of the epoch, from 0.
        seed: decides its order and its random numbers.
        generator: state of the loader's generator after the seed was drawn.
        sampler: state of the sampler before the epoch, where it has one.
        batch: number of batches that have been handed out.
        finished: there are no more.
    """

    number: int
    seed: int
    generator: Any
    sampler: dict[str, Any] | None
    batch: int = 0
    finished: bool = False


@dataclass(frozen=True)
class Plan:
    """How the batches of an epoch are loaded and handed out."""

    setup: Setup
    sampler: Iterable[Any] | None  # None for a stream
    finish: Callable[[Any], Any]   # what happens to a batch last, in the caller's thread
    timeout: float | None = None
    prefetch_factor: int = 1
    in_order: bool = True


class _Iterator:
    """Batches of an epoch from where it stands."""

    def __init__(self, plan: Plan, epoch: Epoch):
        self.epoch = epoch
        self._plan = plan
        self._stream = plan.sampler is None
        self._to_drop = epoch.batch if self._stream else 0  # a stream can only be gone through again
        self._order = _order(plan.sampler, epoch)

    def __iter__(self) -> _Iterator:
        return self

    def __next__(self) -> Any:
        while not self.epoch.finished:
            try:
                batch = self._load()
            except Exhausted:
                self.epoch.finished = True
                self._end()
                break
            if self._to_drop:
                self._to_drop -= 1
                continue
            if self._stream:
                self.epoch.batch += 1
            return self._plan.finish(batch)
        raise StopIteration

    def _load(self) -> Any:
        """The next batch, or Exhausted. A failing batch of a data set with an index is passed over by the next call."""
        raise NotImplementedError

    def _end(self) -> None:
        pass

    def _passed(self, number: int) -> None:
        if not self._stream:
            self.epoch.batch = max(self.epoch.batch, number + 1)


class InlineIterator(_Iterator):
    """Batches loaded by the caller's thread when it asks for them."""

    def __init__(self, plan: Plan, epoch: Epoch):
        super().__init__(plan, epoch)
        self._loading = Loading(plan.setup)

    def _load(self) -> Any:
        entry = next(self._order, None)
        if entry is None:
            raise Exhausted
        number, index = entry
        self._passed(number)
        return self._loading(Task(0, number, batch_seed(self.epoch.seed, number), index))


class PooledIterator(_Iterator):
    """Batches loaded ahead by the workers of a pool."""

    def __init__(self, plan: Plan, epoch: Epoch, pool: Any, workers: int, keep_pool: bool):
        super().__init__(plan, epoch)
        self._pool = pool
        self._keep_pool = keep_pool
        self._active = list(range(workers))
        self._turn = 0
        self._given = [0] * workers             # number of tasks that each worker has got
        self._pending: dict[int, int] = {}      # number of a task to its worker, oldest first
        self._arrived: dict[int, Reply] = {}
        with pool.lock:
            pool.epochs = self._tag = pool.epochs + 1
            self._assign()

    def _load(self) -> Any:
        with self._pool.lock:  # against a thread with a later iterator, which would take this one's replies
            return self._next_batch()

    def _next_batch(self) -> Any:
        while True:
            self._assign()
            if not self._pending:
                raise Exhausted
            reply = self._take()
            worker = self._pending.pop(reply.number)
            if reply.ended:
                if worker in self._active:
                    self._turn -= self._active.index(worker) < self._turn
                    self._active.remove(worker)
                continue
            self._passed(reply.number)
            if reply.failure is not None:
                reply.failure.raise_again()
            return reply.batch

    def _assign(self) -> None:
        """Give out tasks until each worker has as many as it may."""
        if self._tag != self._pool.epochs:
            raise RuntimeError("DataLoader: a later iterator has taken over the persistent workers of this one; use one "
                               "iterator at a time, or persistent_workers=False")
        while len(self._pending) < self._plan.prefetch_factor * len(self._active):
            entry = next(self._order, None)
            if entry is None:
                return
            number, index = entry
            worker = self._next_worker()
            seed = (batch_seed(self.epoch.seed, self._given[worker], worker) if self._stream
                    else batch_seed(self.epoch.seed, number))
            self._given[worker] += 1
            self._pool.send(worker, Task(self._tag, number, seed, index))
            self._pending[number] = worker

    def _next_worker(self) -> int:
        if not self._plan.in_order:
            busy = list(self._pending.values())
            return min(self._active, key=busy.count)
        worker = self._active[self._turn % len(self._active)]
        self._turn = self._turn % len(self._active) + 1
        return worker

    def _take(self) -> Reply:
        """The reply to the oldest task, or in any order the first to come."""
        while True:
            if self._plan.in_order:
                number = next(iter(self._pending))
            else:
                number = next(iter(self._arrived), -1)
            if number in self._arrived:
                return self._arrived.pop(number)
            answer = self._pool.receive(self._plan.timeout)
            if answer is None:
                raise RuntimeError(f"DataLoader timed out after {self._plan.timeout} seconds without a batch from its workers; "
                                   f"raise timeout, or see what keeps the data set")
            reply = answer[1]
            if reply.epoch == self._tag:
                self._arrived[reply.number] = reply

    def _end(self) -> None:
        if not self._keep_pool:
            self._pool.close()


def _order(sampler: Iterable[Any] | None, epoch: Epoch) -> Iterator[tuple[int, Any]]:
    """Number and indices of each batch from where the epoch stands."""
    if sampler is None:
        return ((number, None) for number in itertools.count())
    entries = _Drawn(sampler, order_generator(epoch.seed))
    passed = sum(1 for _ in itertools.islice(entries, epoch.batch))
    if passed < epoch.batch:
        raise RuntimeError(f"DataLoader cannot go on after batch {epoch.batch} of an epoch, because its sampler now gives only "
                           f"{passed}; make the sampler as it was")
    return enumerate(entries, epoch.batch)


class _Drawn:
    """What a sampler gives while the default generator is the epoch's."""

    def __init__(self, sampler: Iterable[Any], generator: Generator):
        self._generator = generator
        with drawing_from(generator):
            self._entries = iter(sampler)

    def __iter__(self) -> _Drawn:
        return self

    def __next__(self) -> Any:
        with drawing_from(self._generator):
            return next(self._entries)
