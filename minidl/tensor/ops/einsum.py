"""einsum: sums of products written with labels, carried out as matrix products of pairs of operands."""

from __future__ import annotations

import math
from collections import Counter
from functools import lru_cache
from itertools import combinations

from ...autograd.op import Cast, Promote
from ..apply import composed, op
from ..tensor import Tensor
from .diagonal import diagonal
from .linalg import matmul
from .reduction import sum as sum_of
from .shape import permute, reshape

__all__ = ["einsum"]

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ELLIPSIS = -1
_DOTS = "\0"  # stands for ... while an equation is read


@op(Cast.HALF, promote=Promote.SAME)
def _multiply(xp, a, b):
    return a * b, (lambda g: g * b, lambda g: g * a)


@composed(Cast.HALF)
def einsum(equation, *operands):
    """Sums of products of elements, written with a label for each axis: `einsum("bij,bjk->bik", x, y)`.

    Args:
        equation: labels (letters) of each operand's axes, `->` and the labels of the result. A label that is repeated in an
            operand takes a diagonal; one that is not in the result is summed over. `...` stands for axes that broadcast.
            Without `->` the result has the axes of `...` and then the labels that occur once, in alphabetical order.
        operands: tensors, or one sequence of them. The other form is `einsum(x, [0, 1], y, [1, 2], [0, 2])`, with integers
            in [0, 52) as labels.

    Raises:
        RuntimeError: for an equation that is none, or does not fit the operands.
        ValueError: for a call of neither form, or a label out of range.
    """
    if isinstance(equation, Tensor):
        operands, terms, result = _from_sublists((equation, *operands))
    elif not isinstance(equation, str) or not operands:
        raise ValueError("einsum expected an equation and at least one operand, or operands each followed by its labels")
    else:
        if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
            operands = tuple(operands[0])
        terms, result = _from_equation(equation)
    if len(terms) != len(operands):
        raise RuntimeError(f"einsum expected as many operands as the equation names ({len(terms)}), got {len(operands)}")
    labels, out = _resolve(terms, result, tuple([x.ndim for x in operands]))
    sizes = _sizes(labels, operands)
    return _arrange(_contract_all([_prepare(x, names, sizes) for x, names in zip(operands, labels)], out), out)


# What the labels say

def _from_sublists(arguments):
    """Operands, terms and result of the form operand, labels, operand, labels, ..., [labels of the result]."""
    operands, lists = arguments[::2], arguments[1::2]
    if len(arguments) % 2:
        operands, lists = operands[:-1], (*lists, arguments[-1])
    if not operands or not all(isinstance(x, Tensor) for x in operands):
        raise ValueError("einsum expected each operand to be a tensor that is followed by its labels")
    terms = []
    for numbers in lists:
        if any(n is not Ellipsis and not 0 <= n < len(_LETTERS) for n in numbers):
            raise ValueError(f"einsum expected labels in [0, {len(_LETTERS)}), got {list(numbers)}")
        terms.append(tuple([_ELLIPSIS if n is Ellipsis else int(n) for n in numbers]))
    return operands, tuple(terms[:len(operands)]), terms[-1] if len(arguments) % 2 else None


@lru_cache(maxsize=256)
def _from_equation(equation):
    """Terms and result: tuples of labels; the result is None where the equation does not name it."""
    left, arrow, right = equation.partition("->")
    terms = tuple(_term(part, equation) for part in left.split(","))
    return terms, _term(right, equation) if arrow else None


def _term(text, equation):
    labels = []
    for character in text.replace("...", _DOTS).replace(" ", ""):
        if character != _DOTS and character not in _LETTERS:
            raise RuntimeError(f"einsum expected letters, commas, one -> and ... in the equation, got {character!r} in "
                               f"{equation!r}")
        labels.append(_ELLIPSIS if character == _DOTS else _LETTERS.index(character))
    return tuple(labels)


@lru_cache(maxsize=256)
def _resolve(terms, result, ndims):
    """Terms and result with a label of its own for each axis that an ellipsis stands for: -1 the last, -2 the one before it."""
    labels, most = [], 0
    for term, ndim in zip(terms, ndims):
        covered = ndim - len(term) + 1 if _ELLIPSIS in term else 0
        if term.count(_ELLIPSIS) > 1 or covered < 0 or (_ELLIPSIS not in term and len(term) != ndim):
            raise RuntimeError(f"einsum expected {_show(term)!r} to name each axis of its operand, which has {ndim}, and ... "
                               f"at most once")
        labels.append(_expanded(term, covered))
        most = max(most, covered)
    counts = Counter(label for term in labels for label in term)
    if result is None:
        out = _expanded((_ELLIPSIS,), most) + tuple(sorted(label for label, n in counts.items() if n == 1 and label >= 0))
    else:
        out = _expanded(result, most)
        unknown = [label for label in out if label not in counts]
        if len(set(out)) != len(out) or unknown or result.count(_ELLIPSIS) > 1:
            raise RuntimeError(f"einsum expected a result of different labels from among the operands', got {_show(result)!r}")
    return tuple(labels), out


def _expanded(term, covered):
    place = term.index(_ELLIPSIS) if _ELLIPSIS in term else None
    return term if place is None else term[:place] + tuple(range(-covered, 0)) + term[place + 1:]


def _show(term):
    return "".join("..." if label == _ELLIPSIS else _LETTERS[label] for label in term)


def _sizes(labels, operands):
    """label -> length; axes of length 1 broadcast."""
    sizes: dict = {}
    for term, x in zip(labels, operands):
        for label, n in zip(term, x.shape):
            known = sizes.setdefault(label, n)
            if n not in (known, 1):
                if known != 1:
                    raise RuntimeError(f"einsum expected equal lengths for each label, got {known} and {n} for "
                                       f"{'an axis of ...' if label < 0 else repr(_LETTERS[label])}")
                sizes[label] = n
    return sizes


# The computation, on pairs (tensor, its labels)

def _prepare(x, labels, sizes):
    """One axis for each label, none for one that is broadcast."""
    labels = list(labels)
    for label in labels[:] if len(set(labels)) < len(labels) else ():
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            if x.shape[first] != x.shape[second]:
                raise RuntimeError(f"einsum expected equal lengths along the axes of a repeated label, got {x.shape[first]} "
                                   f"and {x.shape[second]}")
            x = diagonal(x, 0, first, second)
            del labels[second], labels[first]
            labels.append(label)
    kept = [i for i, (label, n) in enumerate(zip(labels, x.shape)) if n == sizes[label]]
    if len(kept) < len(labels):
        x, labels = reshape(x, [x.shape[i] for i in kept]), [labels[i] for i in kept]
    return x, labels


def _contract_all(pairs, out):
    """One pair from many: the next two are those whose product is smallest in comparison with them."""
    while len(pairs) > 1:
        pairs = [_reduced(x, labels, _needed(pairs, i, out)) for i, (x, labels) in enumerate(pairs)]
        i, j = (0, 1) if len(pairs) == 2 else min(combinations(range(len(pairs)), 2), key=lambda ij: _growth(pairs, *ij, out))
        (a, left), (b, right) = pairs[i], pairs[j]
        rest = [pair for k, pair in enumerate(pairs) if k not in (i, j)]
        needed = set(out).union(*[labels for _, labels in rest])
        pairs = [_contract(a, left, b, right, needed), *rest]
    return _reduced(*pairs[0], set(out))


def _needed(pairs, index, out):
    return set(out).union(*[labels for i, (_, labels) in enumerate(pairs) if i != index])


def _growth(pairs, i, j, out):
    needed = set(out).union(*[labels for k, (_, labels) in enumerate(pairs) if k not in (i, j)])
    sizes = {label: n for x, labels in (pairs[i], pairs[j]) for label, n in zip(labels, x.shape)}
    result = math.prod(n for label, n in sizes.items() if label in needed)
    return result - pairs[i][0].numel() - pairs[j][0].numel()


def _reduced(x, labels, needed):
    """Without the labels that nothing else needs."""
    gone = [i for i, label in enumerate(labels) if label not in needed]
    return (sum_of(x, gone), [label for label in labels if label in needed]) if gone else (x, labels)


def _contract(a, left, b, right, needed):
    """The product of two operands, summed over the labels that both have and nothing needs."""
    size_of = dict(zip([*left, *right], [*a.shape, *b.shape]))
    summed = [label for label in left if label in right and label not in needed]
    batch = [label for label in left if label in right and label in needed]
    rows = [label for label in left if label not in right]
    columns = [label for label in right if label not in left]
    labels = batch + rows + columns

    def lengths(names):
        return [size_of[label] for label in names]

    if not summed:
        a = _shaped(_ordered(a, left, batch + rows), lengths(batch + rows) + [1] * len(columns))
        b = _shaped(_ordered(b, right, batch + columns), lengths(batch) + [1] * len(rows) + lengths(columns))
        return _multiply(a, b), labels
    inner = math.prod(lengths(summed))
    a = _shaped(_ordered(a, left, batch + rows + summed), [*lengths(batch), math.prod(lengths(rows)), inner])
    b = _shaped(_ordered(b, right, batch + summed + columns), [*lengths(batch), inner, math.prod(lengths(columns))])
    return _shaped(matmul(a, b), lengths(labels)), labels


def _shaped(x, shape):
    return x if x.shape == tuple(shape) else reshape(x, shape)


def _ordered(x, labels, order):
    axes = [labels.index(label) for label in order]
    return x if axes == list(range(len(axes))) else permute(x, axes)


def _arrange(pair, out):
    x, labels = pair
    return _ordered(x, labels, list(out))


METHODS = ()
ON_TENSORS: dict = {}
