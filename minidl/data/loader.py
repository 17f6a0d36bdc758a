"""The DataLoader: batches of a data set, loaded ahead by worker processes or threads, resumable in mid-epoch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any, Literal, SupportsFloat, SupportsIndex

from ..tensor.backend import backend_for
from ..tensor.device import Device
from ..tensor.random import Generator, default_generator
from .collate import default_collate, default_convert, pin
from .dataset import IterableDataset
from .iterators import Epoch, InlineIterator, Plan, PooledIterator
from .sampler import BatchSampler, RandomSampler, SequentialSampler
from .seeds import draw_seed
from .worker import Setup


class DataLoader:
    """Goes through a data set in batches, again and again.

    The order of an epoch, and the random numbers that a data set draws from minidl's default generator while a batch is
    loaded, depend on a seed that each epoch draws from the generator, and on nothing else: not on the number of workers (of a
    data set with an index), nor on how far earlier epochs went. Without a generator of its own the loader starts one from
    the default generator when it is first used, and anew after each `manual_seed`.

    Args:
        dataset: samples by index, or an IterableDataset.
        batch_size: samples in a batch; None hands out single samples, converted by default_convert.
        shuffle: a new random order each epoch.
        sampler: gives the indices in order, instead of shuffle.
        batch_sampler: gives lists of indices, instead of batch_size, shuffle, sampler and drop_last.
        num_workers: workers that load batches ahead; 0 loads in the caller's thread.
        collate_fn: makes a batch of a list of samples, by default default_collate.
        pin_memory: copy batches into page-locked memory, from which copies to a GPU are faster; ignored with a warning without
            a GPU.
        drop_last: leave out a last batch that is not full; of a stream, of each worker.
        timeout: seconds to wait for a batch from the workers; 0 waits for ever.
        worker_init_fn: called in each worker with its number.
        multiprocessing_context: name of a start method or a context; by default forkserver where there is one, else spawn.
        generator: draws the seeds of the epochs.
        prefetch_factor: batches that each worker loads ahead, by default 2.
        persistent_workers: keep the workers from one epoch to the next.
        pin_memory_device: "" or a CUDA device.
        in_order: hand out batches in order; False hands out first what is ready first.
        worker_type: "process", or "thread", which share the data set and suit work that NumPy or the disk does.

    Raises:
        ValueError, TypeError: for arguments that exclude each other or are out of range.
    """

    def __init__(self, dataset: Any, batch_size: int | None = 1, shuffle: bool | None = None,
                 sampler: Iterable[Any] | None = None, batch_sampler: Iterable[Any] | None = None, num_workers: int = 0,
                 collate_fn: Callable[[Any], Any] | None = None, pin_memory: bool = False, drop_last: bool = False,
                 timeout: float = 0, worker_init_fn: Callable[[int], None] | None = None, multiprocessing_context: Any = None,
                 generator: Generator | None = None, *, prefetch_factor: int | None = None, persistent_workers: bool = False,
                 pin_memory_device: str = "", in_order: bool = True, worker_type: Literal["process", "thread"] = "process"):
        stream = isinstance(dataset, IterableDataset)
        if not isinstance(generator, Generator | None):
            raise TypeError(f"DataLoader expected a minidl.Generator or None as generator, got {generator!r}")
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context, worker_type)
        _check_order(stream, batch_size, shuffle, sampler, batch_sampler, drop_last)
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        elif not stream:
            sampler = sampler if sampler is not None else RandomSampler(dataset) if shuffle else SequentialSampler(dataset)
        if batch_size is not None:  # also checks the batch size of a stream
            batches = BatchSampler(() if sampler is None else sampler, batch_size, drop_last)
            batch_sampler = None if stream else batches
        self.dataset = dataset
        self.batch_size = batch_size
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.num_workers = num_workers
        batched = batch_size is not None or batch_sampler is not None
        self.collate_fn = collate_fn or (default_collate if batched else default_convert)
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.drop_last = drop_last
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.generator = generator
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.persistent_workers = persistent_workers
        self.in_order = in_order
        self.worker_type = worker_type
        setup = Setup(dataset, self.collate_fn, worker_init_fn, batch_size, batched, drop_last)
        self._order = None if stream else batch_sampler if batched else sampler
        self._plan = Plan(setup, self._order, _finisher(pin_memory, pin_memory_device), timeout or None,
                          self.prefetch_factor or 1, in_order)
        processes = num_workers and worker_type == "process"
        self.multiprocessing_context = _pools().context_of(multiprocessing_context) if processes else None
        self._pool: Any = None
        self._epoch: Epoch | None = None
        self._resumed: Epoch | None = None
        self._own_generator: Generator | None = None
        self._seeded_by: tuple[Any, Any] = (None, None)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__ and not name.startswith("_"):
            raise ValueError(f"DataLoader expected {name} to stay as it was made; make a new loader with the other {name}")
        super().__setattr__(name, value)

    def __iter__(self) -> Iterator[Any]:
        epoch = self._resumed or self._begin()
        iterator: Any
        if self.num_workers:
            iterator = PooledIterator(self._plan, epoch, self._start_workers(epoch.seed), self.num_workers,
                                      self.persistent_workers)
        else:
            iterator = InlineIterator(self._plan, epoch)
        self._epoch, self._resumed = epoch, None
        return iterator

    def __len__(self) -> int:
        """Number of batches of an epoch; of a stream, as its `__len__` has it.

        Raises:
            TypeError: if the data set or the sampler has no length.
        """
        if self._order is not None:
            return len(self._order)  # type: ignore[arg-type]
        samples = len(self.dataset)
        if self.batch_size is None:
            return samples
        return samples // self.batch_size if self.drop_last else -(-samples // self.batch_size)

    def state_dict(self) -> dict[str, Any]:
        """Where the loader stands: integers, strings and tensors.

        It counts the batches handed out by the latest iterator, not those that workers have loaded ahead.

        Raises:
            RuntimeError: in an epoch with in_order=False and workers, because what comes next is not known.
        """
        epoch = self._resumed or self._epoch
        state = {"length": _length(self.dataset), "batch_size": self.batch_size or 0, "order": self._order_name()}
        if self._order is None:
            state["num_workers"] = self.num_workers
        if epoch is None or epoch.finished:
            number = 0 if epoch is None else epoch.number + 1
            sampler = _state_of(self._order)
            state |= {"epoch": number, "batch": 0, "generator": self._generator().get_state()}
        else:
            if self.num_workers and not self.in_order:
                raise RuntimeError("DataLoader.state_dict expected to be called between epochs, because in_order=False hands "
                                   "out batches in an order that cannot be repeated; use in_order=True")
            sampler = epoch.sampler
            state |= {"epoch": epoch.number, "batch": epoch.batch, "generator": epoch.generator, "seed": epoch.seed}
        return state if sampler is None else state | {"sampler": sampler}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where the loader of state_dict stood: the next iterator gives the rest of that epoch.

        Raises:
            ValueError: if the state is of a loader of another data set length, batch size or kind of sampler, or of a stream
                with another number of workers.
        """
        self._check_state(state_dict)
        if "sampler" in state_dict:
            self._order.load_state_dict(state_dict["sampler"])  # type: ignore[union-attr]
        generator = self._generator()
        generator.set_state(state_dict["generator"])
        number, resumed = state_dict["epoch"], None
        if "seed" in state_dict:
            resumed = Epoch(number, state_dict["seed"], generator.get_state(), state_dict.get("sampler"), state_dict["batch"])
        self._resumed = resumed
        self._epoch = Epoch(number - 1, 0, None, None, finished=True) if number else None

    def _check_state(self, state: dict[str, Any]) -> None:
        missing = {"length", "batch_size", "order", "epoch", "batch", "generator"} - set(state)
        if missing:
            raise ValueError(f"DataLoader.load_state_dict expected a state of DataLoader.state_dict(), got one without "
                             f"{sorted(missing)}")
        here = {"length": _length(self.dataset), "batch_size": self.batch_size or 0, "order": self._order_name()}
        if self._order is None:
            here["num_workers"] = self.num_workers
        for name, meaning in _MEANING.items():
            if state.get(name) != here.get(name):
                raise ValueError(f"DataLoader.load_state_dict expected the state of a loader with {meaning} {here.get(name)}, "
                                 f"got one with {state.get(name)}; its position means nothing here")
        if ("sampler" in state) != (_state_of(self._order) is not None):
            raise ValueError("DataLoader.load_state_dict: only one of the loader saved and this one has a sampler with a "
                             "state; give this one the same kind of sampler")

    def _begin(self) -> Epoch:
        generator = self._generator()
        seed = draw_seed(generator)
        number = 0 if self._epoch is None else self._epoch.number + 1
        return Epoch(number, seed, generator.get_state(), _state_of(self._order))

    def _generator(self) -> Generator:
        """The generator given, or one of the loader's own."""
        if self.generator is not None:
            return self.generator
        default = default_generator()
        source, numbers = self._seeded_by
        reseeded = source is default and numbers is not default.numpy  # another thread's default generator does not count
        if self._own_generator is None or reseeded:
            self._own_generator = Generator().manual_seed(draw_seed(default))
            self._seeded_by = default, default.numpy
        return self._own_generator

    def _start_workers(self, seed: int) -> Any:
        if self._pool is not None and self._pool.close.alive:
            return self._pool
        if self.worker_type == "thread":
            pool = _pools().ThreadPool(self._plan.setup, self.num_workers, seed)
        else:
            pool = _pools().ProcessPool(self.multiprocessing_context, self._plan.setup, self.num_workers, seed)
        self._pool = pool if self.persistent_workers else None
        return pool

    def _order_name(self) -> str:
        order = self._order
        return type(order.sampler if type(order) is BatchSampler else order).__name__


def _pools() -> Any:
    """The module of the worker pools; only those who have workers load multiprocessing."""
    return import_module(".pool", __package__)


_MEANING = {"length": "a data set of length", "batch_size": "batch_size", "order": "the sampler",
            "num_workers": "a stream's num_workers"}


def _length(dataset: Any) -> int:
    return len(dataset) if hasattr(dataset, "__len__") else -1


def _state_of(sampler: Any) -> dict[str, Any] | None:
    return sampler.state_dict() if hasattr(sampler, "state_dict") else None


def _finisher(pin_memory: bool, device: str) -> Callable[[Any], Any]:
    if device and Device(device).type != "cuda":
        raise ValueError(f"DataLoader expected pin_memory_device as a CUDA device, got {device!r}")
    if not pin_memory:
        return _as_it_is
    try:
        backend_for(Device("cuda"))
    except RuntimeError:
        warnings.warn("DataLoader: pin_memory=True has no effect, because there is no GPU", stacklevel=3)
        return _as_it_is
    return pin


def _as_it_is(batch: Any) -> Any:
    return batch


def _check_workers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent: bool, context: Any,
                   worker_type: str) -> None:
    for name, value, kind in (("num_workers", num_workers, SupportsIndex), ("timeout", timeout, SupportsFloat),
                              ("prefetch_factor", 1 if prefetch_factor is None else prefetch_factor, SupportsIndex)):
        if not isinstance(value, kind):
            raise TypeError(f"DataLoader expected {name} as a number, got {value!r}")
    if num_workers < 0:
        raise ValueError(f"DataLoader expected num_workers of at least 0, got {num_workers}")
    if timeout < 0:
        raise ValueError(f"DataLoader expected a timeout of at least 0 seconds, got {timeout}")
    if worker_type not in ("process", "thread"):
        raise ValueError(f"DataLoader expected worker_type \"process\" or \"thread\", got {worker_type!r}")
    if prefetch_factor is not None and prefetch_factor < 1:
        raise ValueError(f"DataLoader expected a prefetch_factor of at least 1, got {prefetch_factor}")
    for name, given in (("timeout", timeout), ("prefetch_factor", prefetch_factor), ("persistent_workers", persistent),
                        ("multiprocessing_context", context)):
        if given and not num_workers:
            raise ValueError(f"DataLoader got {name}={given!r}, which is for workers, with num_workers=0; set num_workers")
    if context is not None and worker_type == "thread":
        raise ValueError("DataLoader got multiprocessing_context with worker_type=\"thread\"; leave one of them out")


def _check_order(stream: bool, batch_size: int | None, shuffle: bool | None, sampler: Any, batch_sampler: Any,
                 drop_last: bool) -> None:
    if stream:
        for name, given in (("shuffle", shuffle or None), ("sampler", sampler), ("batch_sampler", batch_sampler)):
            if given is not None:
                raise ValueError(f"DataLoader with an IterableDataset got {name}={given!r}, but a stream has its own order; "
                                 f"leave it out")
    if sampler is not None and shuffle:
        raise ValueError("DataLoader: sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
        raise ValueError("DataLoader: batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and "
                         "drop_last")
    if batch_size is None and drop_last:
        raise ValueError("DataLoader: batch_size=None disables batching and is mutually exclusive with drop_last")
