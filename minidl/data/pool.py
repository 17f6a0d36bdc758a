"""The workers of a DataLoader seen from the caller: start them, give them tasks, take their replies, stop them."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import queue
import signal
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait
from typing import Any

from ..tensor.threads import set_num_threads
from . import transport
from .worker import Reply, Setup, Task, failure_in_reply, serve


class ThreadPool:
    """Workers that are threads of this process and share the data set.

    Args:
        count: number of workers.
        seed: worker i has seed + i.
    """

    epochs = 0  # begun so far; each has its number as a tag

    def __init__(self, setup: Setup, count: int, seed: int):
        self.lock = threading.Lock()  # held while an iterator begins or takes a reply
        self._tasks: list[queue.SimpleQueue] = [queue.SimpleQueue() for _ in range(count)]
        self._replies: queue.SimpleQueue = queue.SimpleQueue()
        stopped = threading.Event()
        for i in range(count):
            arguments = (self._tasks[i], self._replies, stopped, setup, (i, count, seed + i))
            threading.Thread(target=_run_thread, args=arguments, daemon=True, name=f"minidl DataLoader worker {i}").start()
        self.close = weakref.finalize(self, _stop_threads, self._tasks, stopped)

    def send(self, worker: int, task: Task) -> None:
        """Give a worker a task."""
        self._tasks[worker].put(task)

    def receive(self, timeout: float | None) -> tuple[int, Reply] | None:
        """The next reply of any worker and the worker's number; None if there is none for `timeout` seconds."""
        try:
            return self._replies.get(timeout=timeout)
        except queue.Empty:
            return None


class ProcessPool:
    """Workers that are processes, each with a copy of the data set.

    Args:
        context: of multiprocessing, from context_of.
        count: number of workers.
        seed: worker i has seed + i.

    Raises:
        pickle.PicklingError: if the data set or a function cannot be sent to a process.
    """

    epochs = 0  # begun so far; each has its number as a tag

    def __init__(self, context: Any, setup: Setup, count: int, seed: int):
        forked = context.get_start_method() == "fork"
        packed = None if forked else _pack_setup(setup)
        self.lock = threading.Lock()  # held while an iterator begins or takes a reply
        self._connections: list[Any] = []
        self._processes: list[Any] = []
        self._started: set[int] = set()
        self.close = weakref.finalize(self, _stop_processes, self._connections, self._processes)
        for i in range(count):
            ours, theirs = context.Pipe()
            self._connections.append(ours)
            inherited = (setup, self._connections) if forked else None
            process = context.Process(target=_run_process, args=(theirs, (i, count, seed + i), inherited), daemon=True,
                                      name=f"minidl DataLoader worker {i}")
            with _importable_main():
                process.start()
            self._processes.append(process)
            theirs.close()
        if packed is not None:
            for i in range(count):
                self._deliver(i, packed)

    def send(self, worker: int, task: Task) -> None:
        """Give a worker a task.

        Raises:
            RuntimeError: if it is dead.
        """
        self._deliver(worker, transport.pack(task))

    def receive(self, timeout: float | None) -> tuple[int, Reply] | None:
        """The next reply of any worker and the worker's number; None if there is none for `timeout` seconds.

        Raises:
            RuntimeError: if a worker is dead.
        """
        ready = set(wait([*self._connections, *[process.sentinel for process in self._processes]], timeout))
        for worker, connection in enumerate(self._connections):
            if connection in ready:
                try:
                    reply = transport.receive(connection)
                except (EOFError, OSError):
                    raise self._death(worker) from None
                except BaseException:  # a message read by half, by Ctrl-C say, leaves the connection unusable
                    self.close()
                    raise
                self._started.add(worker)
                return worker, reply
        for worker, process in enumerate(self._processes):
            if process.sentinel in ready:
                raise self._death(worker)
        return None

    def _deliver(self, worker: int, parts: transport.Parts) -> None:
        try:
            transport.send(self._connections[worker], parts)
        except OSError:
            raise self._death(worker) from None

    def _death(self, worker: int) -> RuntimeError:
        process = self._processes[worker]
        process.join(1)
        pid, code = process.pid, process.exitcode
        if code is not None and code < 0:
            how = f"was killed by {signal.Signals(-code).name}"
            hint = "; the system may have run out of memory: use fewer workers or smaller batches" if code == -9 else ""
        else:
            how, hint = f"exited unexpectedly with code {code}", ""
        if worker not in self._started and code is not None and code >= 0:
            hint = ("; it may have failed to start: a script that uses worker processes needs its main part under "
                    "`if __name__ == '__main__':`; worker_type=\"thread\" needs no processes")
        self.close()
        return RuntimeError(f"DataLoader worker {worker} (pid {pid}) {how}{hint}")


def context_of(given: Any) -> Any:
    """The multiprocessing context for the name of a start method, a context, or None for the best one here.

    Raises:
        ValueError: for a start method that this platform lacks.
        RuntimeError: for fork where MPI or Numba's threads are loaded, which do not survive it.
        TypeError: for anything else.
    """
    methods = multiprocessing.get_all_start_methods()
    if given is None:
        context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
        if "forkserver" in methods:
            context.set_forkserver_preload([__name__])  # so that workers start with minidl loaded
        return context
    if isinstance(given, str):
        if given not in methods:
            raise ValueError(f"DataLoader expected multiprocessing_context to be one of {methods}, got {given!r}")
        given = multiprocessing.get_context(given)
    if not isinstance(given, multiprocessing.context.BaseContext):
        raise TypeError(f"DataLoader expected multiprocessing_context as the name of a start method or a context, got "
                        f"{given!r}")
    unsafe = [name for name in _UNSAFE_TO_FORK if name in sys.modules]
    if given.get_start_method() == "fork" and unsafe:
        raise RuntimeError(f"DataLoader cannot fork its workers once {unsafe[0]} is loaded, because a forked process may hang "
                           f"in it; use multiprocessing_context=\"forkserver\" or \"spawn\", or worker_type=\"thread\"")
    return given


@contextmanager
def _importable_main() -> Iterator[None]:
    """A program that came through standard input has no file for the workers to run: to them it is as one given by -c."""
    main = sys.modules["__main__"]
    from_input = getattr(main, "__file__", None) == "<stdin>"
    if from_input:
        del main.__file__
    try:
        yield
    finally:
        if from_input:
            main.__file__ = "<stdin>"


def _pack_setup(setup: Setup) -> transport.Parts:
    for name in ("dataset", "collate_fn", "worker_init_fn"):
        value = getattr(setup, {"collate_fn": "collate", "worker_init_fn": "worker_init"}.get(name, name))
        try:
            transport.pack(value)
        except Exception as error:
            raise pickle.PicklingError(
                f"DataLoader cannot send its {name} to worker processes: {type(error).__name__}: {error}. {_ADVICE}") from error
    return transport.pack(setup)


# In the worker

def _run_thread(tasks: Any, replies: Any, stopped: threading.Event, setup: Setup, who: tuple[int, int, int]) -> None:
    def receive() -> Task | None:
        task = tasks.get()
        return None if stopped.is_set() else task

    number = who[0]
    serve(receive, lambda reply: replies.put((number, reply)), lambda: setup, who, f"DataLoader worker thread {number}", False)


def _run_process(connection: Any, who: tuple[int, int, int], inherited: tuple[Setup, list] | None) -> None:
    """Serve until the connection is closed. A forked worker inherits its setup, and the parent's connections as well."""
    for each in inherited[1] if inherited else ():
        each.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent stops its workers
    threading.Thread(target=_follow_parent, daemon=True).start()
    where = f"DataLoader worker process {who[0]} (pid {os.getpid()})"

    def reply(answer: Reply) -> None:
        try:
            parts = transport.pack(answer)
        except Exception as error:
            parts = transport.pack(failure_in_reply(error, answer, where))
        transport.send(connection, parts)

    def start() -> Setup:
        set_num_threads(1)  # the workers share the cores
        if inherited is not None:
            return inherited[0]
        try:
            return transport.receive(connection)
        except (AttributeError, ImportError) as error:
            raise RuntimeError(f"a worker process does not find what the data set or a function is made of: {error}. "
                               f"{_ADVICE}") from error

    try:
        serve(lambda: transport.receive(connection), reply, start, who, where, True)
    except (EOFError, BrokenPipeError, ConnectionResetError):  # the parent has closed the connection
        pass


def _follow_parent() -> None:
    """End this process with its parent, also while it is busy."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


# The end

def _stop_threads(tasks: list, stopped: threading.Event) -> None:
    stopped.set()
    for each in tasks:
        each.put(None)


def _stop_processes(connections: list, processes: list) -> None:
    """Idle workers end as soon as their connection is closed; busy ones are terminated after a moment."""
    for connection in connections:
        connection.close()
    end = time.monotonic() + _GRACE
    for process in processes:
        process.join(max(end - time.monotonic(), 0))
        if process.is_alive():
            process.terminate()
    for process in processes:
        process.join(_GRACE)
        if process.is_alive():
            process.kill()
            process.join()
        process.close()


_GRACE = 0.5  # seconds
_ADVICE = ("Define classes and functions at the top level of a module (no lambda, no local function, nothing under "
           "`if __name__ == '__main__':`), open files and locks in the worker (in __getitem__ or worker_init_fn), or use "
           "worker_type=\"thread\"")
_UNSAFE_TO_FORK = ("mpi4py", "numba.np.ufunc.omppool", "numba.np.ufunc.tbbpool", "numba.np.ufunc.workqueue")
