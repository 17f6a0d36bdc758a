"""A block of lines in CNTK text format, taken apart with array operations: no Python object is made per line or value."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

BLOCK = 4 << 20  # bytes: large enough to make NumPy's calls cheap, small enough for their temporaries


class Block:
    """Whole lines of a file.

    Args:
        text: the lines, the last one ended by a newline too.
        path: the file's name, for errors.
        first_line: the number of the block's first line, counted from 1.

    Attributes:
        lines: number of lines.
        field_line: (fields,) the line in the block of each `|name ...`.
        has_id, is_active: (lines,) whether a line begins with a sequence id, and whether it holds anything but comments.
        ids: the sequence ids of the lines that have one.
    """

    def __init__(self, text: bytes, path: str, first_line: int):
        self.text, self.path, self.first_line = text, path, first_line
        self._check_encoding()
        self._bytes = np.frombuffer(text, np.uint8)
        self._tokens = np.concatenate([[0], np.cumsum(_token_starts(self._bytes), dtype=np.int32)])
        self._line_ends = np.flatnonzero(self._bytes == _NEWLINE)
        self._line_starts = np.concatenate([[0], self._line_ends[:-1] + 1])
        self.lines = len(self._line_ends)
        pipes = np.flatnonzero(self._bytes == _PIPE)
        self.field_line = np.searchsorted(self._line_ends, pipes)
        self._begins = pipes + 1
        self._ends = np.minimum(np.append(pipes[1:], len(text)), self._line_ends[self.field_line])
        self._read_heads()

    def find(self, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The fields of a name: their lines, where what follows their names begins and ends, and how many tokens that is.

        Raises:
            ValueError: if a line has two of them.
        """
        wanted = name.encode()
        last = len(self.text) - 1
        found = np.arange(len(self._begins))
        for offset, byte in enumerate(wanted):
            found = found[self._bytes[np.minimum(self._begins[found] + offset, last)] == byte]
        found = found[_IS_GAP[self._bytes[np.minimum(self._begins[found] + len(wanted), last)]]]
        lines, begins, ends = self.field_line[found], self._begins[found] + len(wanted), self._ends[found]
        twice = np.flatnonzero(lines[1:] == lines[:-1])
        if twice.size:
            raise self.error(begins[twice[0] + 1] - len(wanted) - 1, f"expected one |{name} in a line, got a second one")
        return lines, begins, ends, self._tokens[ends] - self._tokens[begins]

    def cut(self, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """The bytes of some spans, joined."""
        inside = np.zeros(len(self._bytes) + 1, np.int8)
        inside[begins] += 1
        inside[ends] -= 1
        return self._bytes[np.cumsum(inside, dtype=np.int8)[:-1].view(bool)]

    def error(self, position: int, what: str) -> ValueError:
        """An error that names the file, and the line and column of a byte of the block."""
        line = int(np.searchsorted(self._line_ends, position))
        before = self.text[self._line_starts[line]:position].decode(errors="replace")
        return ValueError(f"{self.path}, line {self.first_line + line}, column {len(before) + 1}: {what}")

    def first_fault(self, begins: np.ndarray, ends: np.ndarray, fault: Callable[[bytes], str | None]) -> ValueError:
        """The error of the first token in some spans that has a fault."""
        for begin, end in zip(begins.tolist(), ends.tolist()):
            for token in _TOKEN.finditer(self.text, begin, end):
                what = fault(token.group())
                if what:
                    return self.error(token.start(), what)
        raise AssertionError(f"{self.path}: NumPy refused numbers that the grammar of numbers accepts")

    def _check_encoding(self) -> None:
        try:
            self.text.isascii() or self.text.decode()
        except UnicodeDecodeError as error:
            line = self.text.count(b"\n", 0, error.start)
            column = len(self.text[self.text.rfind(b"\n", 0, error.start) + 1:error.start].decode()) + 1
            raise ValueError(f"{self.path}, line {self.first_line + line}, column {column}: expected UTF-8 text, got byte "
                             f"0x{self.text[error.start]:02x}; convert the file to UTF-8 first") from None

    def _read_heads(self) -> None:
        """What stands before a line's first pipe: a sequence id or nothing."""
        first = np.searchsorted(self._begins, self._line_starts)
        first_pipe = np.append(self._begins - 1, len(self.text))[first]
        head_ends = np.minimum(first_pipe, self._line_ends)
        tokens = self._tokens[head_ends] - self._tokens[self._line_starts]
        for line in np.flatnonzero((tokens > 0) & (first_pipe > self._line_ends))[:1]:
            raise self.error(self._line_starts[line], "expected a field such as |name 1 2, got a line without a pipe; is the "
                                                      "file cut off, or of another format?")
        for line in np.flatnonzero(tokens > 1)[:1]:
            raise self.error(self._line_starts[line], "expected one sequence id before the first pipe, got "
                             f"{self.text[self._line_starts[line]:head_ends[line]].decode()!r}")
        self.has_id = tokens == 1
        begins, ends = self._line_starts[self.has_id], head_ends[self.has_id]
        heads = self.cut(begins, ends + 1)  # one more: the pipe keeps neighbours apart
        ids = numbers(heads, len(begins))
        if ids is None or ids.dtype != np.int64:
            raise self.first_fault(begins, ends, _id_fault)
        self.ids = ids
        names = self._bytes[self._begins]
        for field in np.flatnonzero(_IS_GAP[names])[:1]:
            raise self.error(self._begins[field] - 1, "expected a stream's name right after the pipe, got none")
        self.is_active = self.has_id.copy()
        self.is_active[self.field_line[names != _HASH]] = True


def read_blocks(path: str) -> Iterator[Block]:
    """The lines of a file, some megabytes at a time.

    Raises:
        FileNotFoundError: if there is no such file.
    """
    try:
        file = open(path, "rb")
    except FileNotFoundError:
        raise FileNotFoundError(f"CTFDeserializer expected a file in CNTK text format, found no file {path!r}") from None
    with file:
        line = 1
        text = file.read(BLOCK).removeprefix(b"\xef\xbb\xbf")
        while text:
            text += file.readline()
            if not text.endswith(b"\n"):
                warnings.warn(f"{path} ends without a newline; make sure that its last line is not cut off", stacklevel=3)
                text += b"\n"
            block = Block(text, path, line)
            yield block
            line += block.lines
            text = file.read(BLOCK)


def dense_values(block: Block, begins: np.ndarray, ends: np.ndarray, count: int) -> np.ndarray:
    """The float32 numbers in some spans, in order."""
    values = _as_float32(numbers(block.cut(begins, ends), count))
    if values is None:
        raise block.first_fault(begins, ends, _number_fault)
    return values


def sparse_values(block: Block, begins: np.ndarray, ends: np.ndarray, count: int,
                  size: int) -> tuple[np.ndarray, np.ndarray]:
    """The int64 indices below `size` and the float32 values of the index:value pairs in some spans, in order."""
    text = block.cut(begins, ends)
    colons = np.flatnonzero(text == _COLON)
    if len(colons) == count and _are_pairs(text, colons):
        text[colons] = _SPACE
        pairs = numbers(text, 2 * count)
        values = None if pairs is None else _as_float32(pairs[1::2])
        if pairs is not None and values is not None and (pairs[::2] < size).all():
            return pairs[::2].astype(np.int64), values
    raise block.first_fault(begins, ends, lambda token: _pair_fault(token, size))


def numbers(text: np.ndarray, count: int) -> np.ndarray | None:
    """Exactly `count` numbers between gaps, int64 where all are written in digits alone and fit, else float64; None where
    something is no number. Each gap-free part gives at least one number, hence exactly one."""
    if count == 0:  # fromstring makes a number of blanks alone
        return np.empty(0, np.int64)
    line = text.tobytes().replace(b"|", b" ")
    if b"\v" in line or b"\f" in line:  # blanks to fromstring, but no gaps
        return None
    if _IS_WHOLE[text].all():  # four times as fast as reading floats
        values = _parse(line, count, np.int64)
        if values is None or values.max() < _LIMIT:  # larger ones are cut off to the limit
            return values
    return _parse(line, count, np.float64)


def _parse(line: bytes, count: int, dtype: Any) -> np.ndarray | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)  # what NumPy before 2.3 gives where later ones raise
            values = np.fromstring(line, dtype, sep=" ")
    except (ValueError, DeprecationWarning):
        return None
    return values if len(values) == count else None


def _as_float32(values: np.ndarray | None) -> np.ndarray | None:
    """None where a number is infinite in float32 or NaN."""
    if values is None:
        return None
    with np.errstate(over="ignore"):
        rounded = values.astype(np.float32)
    return rounded if np.isfinite(rounded).all() else None


def _are_pairs(text: np.ndarray, colons: np.ndarray) -> bool:
    """Does each token have its colon, digits alone before it and something behind it?"""
    if not len(colons):
        return True
    starts = np.flatnonzero(_token_starts(text))
    if colons[-1] + 1 == len(text) or (starts >= colons).any() or (colons[:-1] >= starts[1:]).any():
        return False
    strange = np.cumsum(~_IS_DIGIT[text], dtype=np.int32)
    return not (_IS_GAP[text[colons + 1]].any() or (strange[colons - 1] - strange[starts]).any()
                or not _IS_DIGIT[text[starts]].all())


def _token_starts(text: np.ndarray) -> np.ndarray:
    gap = _IS_GAP[text]
    starts = ~gap
    starts[1:] &= gap[:-1]
    return starts


# What is wrong with a token; asked only when something is

def _number_fault(token: bytes) -> str | None:
    if not _NUMBER.fullmatch(token):
        return f"expected a number, got {_shown(token)}"
    with np.errstate(over="ignore"):
        fits = np.isfinite(np.float32(float(token)))
    return None if fits else f"expected a number that float32 can hold, got {_shown(token)}"


def _pair_fault(token: bytes, size: int) -> str | None:
    index, colon, value = token.partition(b":")
    if not colon or not _DIGITS.fullmatch(index):
        return f"expected index:value, got {_shown(token)}; is the stream dense?"
    if int(index) >= size:
        return f"expected an index below {size}, got {_shown(index)}"
    return _number_fault(value)


def _id_fault(token: bytes) -> str | None:
    if not _DIGITS.fullmatch(token):
        return f"expected a sequence id (digits) or a pipe, got {_shown(token)}"
    return None if int(token) < _LIMIT else f"expected a sequence id that int64 can hold, got {_shown(token)}"


def _shown(token: bytes) -> str:
    text = token.decode()
    return repr(text if len(text) <= 40 else text[:40] + "...")


def _table(characters: bytes) -> np.ndarray:
    table = np.zeros(256, bool)
    table[list(characters)] = True
    return table


_NEWLINE, _SPACE, _PIPE, _COLON, _HASH = b"\n |:#"
_LIMIT = np.iinfo(np.int64).max
_IS_GAP = _table(b" \t\r\n|")
_IS_DIGIT = _table(b"0123456789")
_IS_WHOLE = _IS_GAP | _IS_DIGIT
_TOKEN = re.compile(rb"[^ \t\r\n|]+")
_DIGITS = re.compile(rb"\d+")
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
