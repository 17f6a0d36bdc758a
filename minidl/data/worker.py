"""What a worker does, in a process, in a thread or in the caller's own: take tasks, load samples, collate them."""

from __future__ import annotations

import random
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from ..tensor.random import Generator, default_generator
from .dataset import IterableDataset
from .seeds import drawing_from


@dataclass(frozen=True)
class WorkerInfo:
    """Who a worker is.

    Attributes:
        id: its number, from 0.
        num_workers: how many there are.
        seed: of the worker; minidl's default generator starts with it.
        dataset: a copy of its own in a process; the one that all share in a thread.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any


def get_worker_info() -> WorkerInfo | None:
    """The WorkerInfo in a worker of a DataLoader, None elsewhere."""
    return getattr(_local, "info", None)


@dataclass(frozen=True)
class Setup:
    """What a worker needs to know once."""

    dataset: Any
    collate: Callable[[Any], Any]
    worker_init: Callable[[int], None] | None
    batch_size: int | None  # of a stream
    batched: bool
    drop_last: bool

    def fetcher(self) -> Callable[[Any], Any]:
        """A function from what a sampler gives to a batch, for one epoch."""
        if isinstance(self.dataset, IterableDataset):
            return _StreamFetcher(self)
        return _IndexFetcher(self)


@dataclass(frozen=True)
class Task:
    """Load a batch. `index` is an index or a list of them; a stream needs none."""

    epoch: int
    number: int
    seed: int
    index: Any


@dataclass(frozen=True)
class Reply:
    """A task's result: a batch, or a failure, or the end of the worker's stream."""

    epoch: int
    number: int
    batch: Any = None
    failure: Failure | None = None
    ended: bool = False


@dataclass(frozen=True)
class Failure:
    """An exception of a worker as text, to be raised again in the caller's thread."""

    kind: type
    message: str

    def raise_again(self) -> None:
        """Raise the same kind of exception, or RuntimeError where the kind wants other arguments."""
        raise self._error()  # not from a variable, which would keep the frames, and a pool in them, in a cycle

    def _error(self) -> Exception:
        try:
            error = self.kind(_Text(self.message))
        except Exception:
            return RuntimeError(self.message)
        return error if isinstance(error, Exception) else RuntimeError(self.message)


class Exhausted(Exception):
    """A stream has no more batches."""


class Loading:
    """Loads the batches that tasks ask for, each with its own random numbers.

    Args:
        own_process: Python's and NumPy's global random numbers belong to this worker alone, and are seeded too.
    """

    def __init__(self, setup: Setup, own_process: bool = False):
        self._setup = setup
        self._own_process = own_process
        self._epoch = -1
        self._fetch: Any = None

    def __call__(self, task: Task) -> Any:
        """The batch of a task.

        Raises:
            Exhausted: if the stream has ended.
        """
        if self._own_process:
            _seed_process(task.seed)
        with drawing_from(Generator().manual_seed(task.seed)):
            if self._epoch != task.epoch:
                self._fetch = None
                self._fetch, self._epoch = self._setup.fetcher(), task.epoch
            try:
                return self._fetch(task.index)
            except StopIteration as error:
                raise RuntimeError(f"DataLoader: StopIteration left the data set or collate_fn{self.place(task)}; it would end "
                                   f"the epoch unnoticed") from error

    def place(self, task: Task) -> str:
        """Where the loading of a task's batch has come to, for an error message."""
        if self._fetch is None:
            return " while it started to read the data set"
        if self._fetch.at is not None:
            return f" while it loaded the sample of index {self._fetch.at!r}"
        return f" in its batch {task.number}" + ("" if task.index is None else f", indices {_shortened(task.index)}")


def serve(receive: Callable[[], Task | None], reply: Callable[[Reply], None], start: Callable[[], Setup],
          who: tuple[int, int, int], where: str, own_process: bool) -> None:
    """Answer each task by a reply until there is none.

    Args:
        who: the worker's number, how many there are, its seed.
        where: names the worker in error messages.
    """
    load: Any = None
    failed = None
    try:
        setup = start()
        _initialize(setup, WorkerInfo(*who, setup.dataset), own_process)
        load = Loading(setup, own_process)
    except BaseException as error:
        failed = _failure(error, f"{where} while it started")
    while (task := receive()) is not None:
        if failed:
            reply(Reply(task.epoch, task.number, failure=failed))
            continue
        try:
            answer = Reply(task.epoch, task.number, load(task))
        except Exhausted:
            answer = Reply(task.epoch, task.number, ended=True)
        except BaseException as error:
            answer = Reply(task.epoch, task.number, failure=_failure(error, f"{where}{load.place(task)}"))
        reply(answer)


def failure_in_reply(error: BaseException, reply: Reply, where: str) -> Reply:
    """The reply for a batch that cannot be sent."""
    return Reply(reply.epoch, reply.number,
                 failure=_failure(error, f"{where} while it sent batch {reply.number}; a batch has to be picklable"))


class _IndexFetcher:
    """Samples by index. `at` is the index of the sample being loaded."""

    def __init__(self, setup: Setup):
        self.setup = setup
        self.at: Any = None

    def __call__(self, index: Any) -> Any:
        dataset, self.at = self.setup.dataset, None
        if not self.setup.batched:
            sample = self._sample(index)
        elif many := getattr(dataset, "__getitems__", None):
            sample = many(index)
        else:
            sample = [self._sample(i) for i in index]
        return self.setup.collate(sample)

    def _sample(self, index: Any) -> Any:
        self.at = index
        sample = self.setup.dataset[index]
        self.at = None
        return sample


class _StreamFetcher:
    """Samples of a stream."""

    at = None

    def __init__(self, setup: Setup):
        self.setup = setup
        self.samples = iter(setup.dataset)
        self.ended = False

    def __call__(self, index: Any) -> Any:
        setup = self.setup
        if self.ended:
            raise Exhausted
        wanted = setup.batch_size if setup.batched else 1
        samples = list(islice(self.samples, wanted))
        self.ended = len(samples) < (wanted or 1)
        if not samples or (self.ended and setup.drop_last):
            raise Exhausted
        return setup.collate(samples if setup.batched else samples[0])


class _Text(str):
    """A message that KeyError shows with its line breaks."""

    __repr__ = str.__str__


def _initialize(setup: Setup, info: WorkerInfo, own_process: bool) -> None:
    _local.info = info
    default_generator().manual_seed(info.seed)
    if own_process:
        _seed_process(info.seed)
    if setup.worker_init is not None:
        setup.worker_init(info.id)


def _seed_process(seed: int) -> None:
    random.seed(seed)
    # The same words in the same order would give the same numbers as Python's generator, which is of the same kind.
    np.random.seed([seed >> shift & 0xFFFFFFFF for shift in (96, 64, 32, 0)])


def _shortened(index: Any) -> str:
    if isinstance(index, list) and len(index) > 16:
        return f"{str(index[:16])[:-1]}, ...]"
    return repr(index)


def _failure(error: BaseException, where: str) -> Failure:
    kind = type(error)
    text = "".join(traceback.format_exception(kind, error, error.__traceback__))
    known = getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind  # else it cannot travel
    return Failure(kind if known else RuntimeError, f"{kind.__name__} in {where}: {error}\n\nOriginal traceback:\n{text}")


_local = threading.local()
