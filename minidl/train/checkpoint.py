"""Checkpoint: the state of a whole training run in one file, from which it goes on as if it had never stopped."""

from __future__ import annotations

import copy
import os
import random
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from ..tensor.random import default_generator, initialization_generator
from ..tensor.serialization import load, save
from ..version import __version__


class Checkpoint:
    """Saves and restores the objects of a training run together with the random number streams.

    Each file holds the state_dict of every object, this thread's two default streams of minidl, the global streams of NumPy
    and of Python's random module, whatever `save` is given besides, and minidl's version. Weights lie in it under names such
    as "model.0.weight", which other readers of safetensors see too.

    Args:
        keep: how many of the newest files to keep, each under a number of its own ("run.000001.safetensors"); by default
            one file, which is overwritten.
        parts: objects with state_dict() and load_state_dict(state), by any names: model, optimizer, scheduler, loader,
            scaler, ... None stands for a part that this run does not have.

    Raises:
        TypeError: if an object lacks one of the two methods.
        ValueError: if keep is below 1, or a name is one that the file needs itself.

    Example:
        checkpoint = Checkpoint(model=model, optimizer=optimizer, keep=3)
        epoch = checkpoint.restore(path)["epoch"] if Checkpoint.latest(path) else 0
        ...
        checkpoint.save(path, epoch=epoch)
    """

    def __init__(self, *, keep: int | None = None, **parts: Any):
        if keep is not None and (type(keep) is not int or keep < 1):
            raise ValueError(f"Checkpoint expected keep as a number of files of at least 1, or None, got {keep!r}")
        for name, part in parts.items():
            if name in _OWN:
                raise ValueError(f"Checkpoint cannot name a part {name!r}, which the file uses itself; choose another name")
            for method in ("state_dict", "load_state_dict"):
                if part is not None and not callable(getattr(part, method, None)):
                    raise TypeError(f"Checkpoint expected objects with state_dict and load_state_dict, got "
                                    f"{type(part).__name__} without {method} as {name}; give counters and the like to save()")
        self.keep = keep
        self.parts = {name: part for name, part in parts.items() if part is not None}

    def save(self, path: Any, /, **extra: Any) -> str:
        """Write everything to a file, all of it or, on an error, nothing; returns the file's name.

        Args:
            path: of the file. With `keep`, a number is put before its last suffix, and older numbers are deleted afterwards.
            extra: what `restore` shall return, such as epoch and step: whatever minidl.save takes.

        Raises:
            TypeError: for a part of the state that minidl.save cannot store; it names the part.
            OSError: if the file cannot be written; the ones from before are intact.
        """
        content = {name: part.state_dict() for name, part in self.parts.items()}
        content |= {"extra": extra, "random": _RandomStreams().state_dict(), "version": {"minidl": __version__}}
        if self.keep is None:
            save(content, path)
            return os.fspath(path)
        before = _numbered(path)
        written = _with_number(path, max(before, default=0) + 1)
        save(content, written)
        for number in sorted(before)[:max(len(before) + 1 - self.keep, 0)]:
            with suppress(FileNotFoundError):
                os.unlink(before[number])
        return written

    def restore(self, path: Any, *, device: Any = None) -> dict[str, Any]:
        """Bring all objects and random streams to the state in a file; returns the `extra` given to save.

        The file is read and checked as a whole before anything changes. If an object then refuses its state, all objects
        get theirs back, for which a copy of it is made first.

        Args:
            path: as given to save; with `keep`, the newest of its numbered files is taken.
            device: where the states are loaded to before the objects take them; by default where they were.

        Raises:
            FileNotFoundError: if there is no such file.
            RuntimeError: if the file is damaged, is no checkpoint, has other parts than this Checkpoint, or a part refuses
                its state.
        """
        file = (self.latest(path) or path) if self.keep else path
        content = load(file, device)
        if not isinstance(content, dict) or not _OWN <= content.keys():
            raise RuntimeError(f"restore expected a file of Checkpoint.save, got {file} without {', '.join(sorted(_OWN))}; "
                               f"use minidl.load")
        _check_names(file, content.keys() - _OWN, self.parts.keys())
        parts = {**self.parts, "random": _RandomStreams()}
        before = {name: copy.deepcopy(part.state_dict()) for name, part in parts.items()}
        name = ""
        try:
            for name, part in parts.items():
                part.load_state_dict(content[name])
        except Exception as error:
            for other, part in parts.items():
                part.load_state_dict(before[other])
            raise RuntimeError(f"restore could not give {name} its state from {file}, so all parts keep theirs; make {name} as "
                               f"it was when the file was saved ({type(error).__name__}: {error})") from error
        return content["extra"]

    @staticmethod
    def latest(path: Any) -> str | None:
        """The newest file that save wrote for `path`: the one with the highest number, else `path` itself, else None."""
        numbered = _numbered(path)
        if numbered:
            return numbered[max(numbered)]
        return os.fspath(path) if os.path.exists(path) else None


_OWN = {"extra", "random", "version"}


def _check_names(file: Any, found: set[str], expected: Any) -> None:
    missing, unexpected = sorted(expected - found), sorted(found - expected)
    if missing or unexpected:
        raise RuntimeError(f"restore expected a file with the parts {', '.join(sorted(expected)) or '(none)'}, got {file}: "
                           f"missing {', '.join(missing) or '(none)'}, unexpected {', '.join(unexpected) or '(none)'}; "
                           f"make the Checkpoint of the objects that were saved")


class _RandomStreams:
    """The random number streams as one more part."""

    def state_dict(self) -> dict[str, Any]:
        return {"run_time": default_generator().get_state(), "initialization": initialization_generator().get_state(),
                "numpy": np.random.get_state(), "python": random.getstate()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        default_generator().set_state(state["run_time"])
        initialization_generator().set_state(state["initialization"])
        np.random.set_state(state["numpy"])
        random.setstate(state["python"])


def _with_number(path: Any, number: int) -> str:
    path = Path(path)
    return str(path.with_name(f"{path.stem}.{number:06d}{path.suffix}"))


def _numbered(path: Any) -> dict[int, str]:
    """The files that were saved for `path` under numbers, by number."""
    path = Path(path)
    pattern = re.compile(rf"{re.escape(path.stem)}\.(\d{{6,}}){re.escape(path.suffix)}")
    if not path.parent.is_dir():
        return {}
    found = ((pattern.fullmatch(entry.name), entry) for entry in path.parent.iterdir())
    return {int(match[1]): str(entry) for match, entry in found if match}
