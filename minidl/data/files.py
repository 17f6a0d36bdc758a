"""Where data sets lie, and whole files read with errors that name them."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path

__all__ = ["find_data", "read_text"]


def find_data(relative: str | os.PathLike, data: str | os.PathLike | None = None) -> Path:
    """The path of a data set or one of its files.

    Args:
        relative: its path within the folder of data sets, such as "mnist"; an absolute path stands for itself.
        data: the folder of data sets, what a script's option `--data` says; by default the environment variable MINIDL_DATA.

    Raises:
        FileNotFoundError: if it is not there; the message says where it was looked for.
    """
    folder = os.environ.get("MINIDL_DATA") if data is None else data
    if folder in (None, "") and not os.path.isabs(relative):
        raise FileNotFoundError(f"find_data does not know where to look for {os.fspath(relative)!r}: set the environment "
                                f"variable MINIDL_DATA to the folder of data sets, or pass it with --data")
    path = Path(folder or "") / relative
    if not path.exists():
        told_by = "the environment variable MINIDL_DATA" if data is None else "--data"
        raise FileNotFoundError(f"find_data looked for {path} and found nothing there; put the data set in place, or let "
                                f"{told_by} name the folder that holds {os.fspath(relative)!r}")
    return path


def read_bytes(path: str | os.PathLike) -> bytes:
    """All bytes of a file; a gzip file, known by its first two bytes, comes unpacked.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is empty, or a damaged or truncated gzip file.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"expected a file at {path}, found {'a folder' if path.is_dir() else 'nothing there'}")
    content = path.read_bytes()
    if content[:2] == _GZIP:
        try:
            content = gzip.decompress(content)
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{path} is a damaged or truncated gzip file ({error}); fetch it again") from error
    if not content:
        raise ValueError(f"{path} is empty; fetch it again")
    return content


def read_text(path: str | os.PathLike) -> str:
    """The text of a UTF-8 file (gzip or not), line ends as they are.

    Raises:
        ValueError: also if it is not UTF-8.
    """
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no UTF-8 text: {error}; convert it first") from error


_GZIP = b"\x1f\x8b"
