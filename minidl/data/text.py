"""Text as numbers: vocabularies of characters and of words, and windows of a text for language models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from .dataset import Dataset
from .transforms import array_of

__all__ = ["CharVocabulary", "TextWindows", "WordVocabulary"]


class CharVocabulary:
    """Numbers the characters of a text, in the order of their code points.

    Args:
        text: one that holds every character.

    Attributes:
        characters: all of them, in order.
    """

    def __init__(self, text: str = ""):
        self._set(text)

    def __len__(self) -> int:
        return len(self.characters)

    def encode(self, text: str) -> np.ndarray:
        """The numbers of the characters, int64 (len(text),).

        Raises:
            ValueError: for a character that is not in the vocabulary.
        """
        points = _code_points(text)
        tokens = np.searchsorted(self._points, points)
        known = np.append(self._points, np.uint32(0xFFFFFFFF))[tokens] == points
        if not known.all():
            at = int(np.argmin(known))
            raise ValueError(f"CharVocabulary does not know {text[at]!r}, character {at} of the text; make the vocabulary "
                             f"of all of the text")
        return tokens.astype(np.int64, copy=False)

    def decode(self, tokens: Any) -> str:
        """The text of numbers (length,): an array, a tensor on any device, or a list.

        Raises:
            ValueError: for numbers outside [0, len).
        """
        tokens = _tokens("CharVocabulary.decode", tokens, len(self))
        return self._points[tokens].astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")

    def state_dict(self) -> dict[str, Any]:
        """What load_state_dict needs: {"characters": str}."""
        return {"characters": self.characters}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Become the vocabulary that gave this state_dict."""
        self._set(_entry("CharVocabulary", state_dict, "characters", str))

    def _set(self, text: str) -> None:
        self._points = np.unique(_code_points(text))
        self.characters = self._points.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")


class WordVocabulary:
    """Numbers words: padding, the unknown word, then all others from the most frequent on, ties in alphabetical order.

    Args:
        text: a text, of which words are what white space separates, or an iterable of words.
        min_count: a word that is rarer is left out.
        max_size: the most entries, padding and the unknown word included.
        unknown: stands for every word that is not in the vocabulary; None: such a word is an error.
        padding: fills up sequences to one length; None: there is none.

    Attributes:
        words: all of them, in order.
        padding_index, unknown_index: their numbers, or None.
    """

    def __init__(self, text: str | Iterable[str] = (), *, min_count: int = 1, max_size: int | None = None,
                 unknown: str | None = "<unk>", padding: str | None = "<pad>"):
        special = [word for word in (padding, unknown) if word is not None]
        if len(set(special)) < len(special):
            raise ValueError(f"WordVocabulary expected padding and unknown to differ, got {padding!r} for both")
        if max_size is not None and max_size < len(special):
            raise ValueError(f"WordVocabulary expected max_size of at least {len(special)}, got {max_size}")
        counts = Counter(_words(text))
        for word in special:
            counts.pop(word, None)
        kept = sorted((word for word, count in counts.items() if count >= min_count), key=lambda word: (-counts[word], word))
        self._set((special + kept)[:max_size], padding, unknown)

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: str) -> bool:
        return word in self._numbers

    def encode(self, text: str | Iterable[str]) -> np.ndarray:
        """The numbers of the words of a text or of an iterable, int64 (words,).

        Raises:
            ValueError: for a word that is not in the vocabulary, where that has no unknown word.
        """
        words = _words(text)
        numbers = [self._numbers.get(word, self.unknown_index) for word in words]
        if None in numbers:
            raise ValueError(f"WordVocabulary does not know {words[numbers.index(None)]!r} and has no unknown word; "
                             f"give it one with unknown=")
        return np.array(numbers, np.int64)

    def decode(self, tokens: Any) -> list[str]:
        """The words of numbers (length,): an array, a tensor on any device, or a list.

        Raises:
            ValueError: for numbers outside [0, len).
        """
        return [self.words[token] for token in _tokens("WordVocabulary.decode", tokens, len(self))]

    def state_dict(self) -> dict[str, Any]:
        """What load_state_dict needs: {"words": list, "padding": str or None, "unknown": str or None}."""
        return {"words": list(self.words), "padding": self.padding, "unknown": self.unknown}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Become the vocabulary that gave this state_dict."""
        padding, unknown = (_entry("WordVocabulary", state_dict, key, (str, type(None))) for key in ("padding", "unknown"))
        words = _entry("WordVocabulary", state_dict, "words", list)
        if len(set(words)) < len(words) or not {padding, unknown} - {None} <= set(words):
            raise ValueError("WordVocabulary expected a state_dict whose words differ and hold padding and unknown")
        self._set(words, padding, unknown)

    def _set(self, words: list[str], padding: str | None, unknown: str | None) -> None:
        self.words, self.padding, self.unknown = list(words), padding, unknown
        self._numbers = {word: number for number, word in enumerate(words)}
        self.padding_index, self.unknown_index = (None if w is None else self._numbers[w] for w in (padding, unknown))


class TextWindows(Dataset):
    """Windows of a text: sample i is (x, y), both (length,), where y is x one token further on.

    A slice or an array of indices gives a batch (n, length). Samples are copies.

    Args:
        tokens: (n,), an array or a tensor of integers.
        length: tokens in a window.
        stride: tokens from the start of one window to that of the next; by default length, and each token is predicted once.

    Attributes:
        left_over: number of tokens at the text's end that no window predicts, fewer than the stride.

    Raises:
        ValueError: if there are fewer than length + 1 tokens.
    """

    def __init__(self, tokens: Any, length: int, *, stride: int | None = None):
        tokens = array_of("TextWindows", tokens)
        stride = length if stride is None else stride
        if length < 1 or stride < 1:
            raise ValueError(f"TextWindows expected a length and a stride of at least 1, got {length} and {stride}")
        if tokens.ndim != 1 or tokens.dtype.kind not in "iu":
            raise ValueError(f"TextWindows expected integer tokens (n,), got {tokens.dtype} of shape {tokens.shape}")
        if len(tokens) <= length:
            raise ValueError(f"TextWindows expected at least {length + 1} tokens for windows of {length}, got {len(tokens)}")
        self.windows = np.lib.stride_tricks.sliding_window_view(tokens, length + 1)[::stride]
        self.left_over = (len(tokens) - length - 1) % stride

    def __len__(self) -> int:
        return len(self.windows)

    def __getitem__(self, index: Any) -> tuple[np.ndarray, np.ndarray]:
        window = self.windows[index]
        return window[..., :-1].copy(), window[..., 1:].copy()


def _code_points(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint32)


def _words(text: str | Iterable[str]) -> list[str]:
    return text.split() if isinstance(text, str) else list(text)


def _tokens(name: str, tokens: Any, size: int) -> np.ndarray:
    array = np.asarray(tokens) if isinstance(tokens, (list, tuple)) else array_of(name, tokens)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(f"{name} expected integer tokens (length,), got {array.dtype} of shape {array.shape}")
    if array.size and not (0 <= array.min() and array.max() < size):
        raise ValueError(f"{name} expected tokens in [0, {size}), got some in [{array.min()}, {array.max()}]")
    return array.astype(np.int64)


def _entry(name: str, state_dict: dict[str, Any], key: str, kind: Any) -> Any:
    if key not in state_dict or not isinstance(state_dict[key], kind):
        raise ValueError(f"{name} expected a state_dict with {key!r} as its state_dict() gives it, got {sorted(state_dict)}")
    return state_dict[key]
