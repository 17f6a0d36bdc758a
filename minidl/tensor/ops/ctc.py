"""Connectionist temporal classification: the loss of a label sequence that is aligned with frames in any way."""

from __future__ import annotations

import numpy as np

from ...autograd.backward import grad
from ...autograd.op import Cast, Promote
from .. import dtypes
from ..apply import composed, op
from ..kernels.loss import NEVER
from ..tensor import Tensor
from . import comparison, gathering, joining, pointwise, reduction, shape
from .loss import check_reduction, constant, in_float32, reduced

__all__ = ["ctc_loss"]


@op(Cast.FULL, promote=Promote.NONE, replay=True)
def _ctc_loss(xp, x, *, labels, skip, input_lengths, target_lengths, zero_infinity):
    value, losses, alphas = xp.ctc_loss(x, labels, skip, input_lengths, target_lengths, zero_infinity)

    def gradient(g):
        return xp.ctc_gradient(g, x, alphas, losses, labels, skip, input_lengths, target_lengths, zero_infinity)

    return value, gradient


@composed(Cast.FULL)
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """-log of the probability that the frames spell the targets, repeated classes merged and blanks dropped.

    The gradient is that for log_probs themselves; behind a log_softmax it is the same as PyTorch's.

    Args:
        log_probs: logarithms of the classes' probabilities in each frame.
        targets: class indices without blanks, padded, or the sequences one after the other.
        input_lengths, target_lengths: frames and classes that count of each sequence: a tensor, a sequence or an integer.
        blank: index of the blank class.
        reduction: "mean" (of losses divided by their target lengths), "sum" or "none".
        zero_infinity: targets that do not fit into their frames give loss and gradient 0 rather than inf and nan.

    Shapes: log_probs (T, N, C) or (T, C); targets (N, S) or (sum of target_lengths,); lengths (N,) or ().

    Raises:
        RuntimeError: for shapes and lengths that do not fit. IndexError: for a class index that is out of range.
    """
    check_reduction("ctc_loss", reduction)
    if log_probs.ndim not in (2, 3):
        raise RuntimeError(f"ctc_loss expected log_probs of shape (T, N, C) or (T, C), got {log_probs.shape}")
    batched = log_probs.ndim == 3
    dtype, x = in_float32(log_probs)
    x = x if batched else shape.reshape(x, x.shape[0], 1, x.shape[1])
    frames, batch, classes = x.shape
    if not 0 <= blank < classes:
        raise RuntimeError(f"ctc_loss expected blank in [0, {classes - 1}], got {blank}")
    frame_counts = _lengths("input_lengths", input_lengths, batch, frames)
    counts = _lengths("target_lengths", target_lengths, batch, None)
    labels, skip = _states(x.backend, targets, counts, blank, classes)
    counts, frame_counts = x.backend.asarray(counts), x.backend.asarray(frame_counts)
    losses = _ctc_loss(x, labels=labels, skip=skip, input_lengths=frame_counts, target_lengths=counts,
                       zero_infinity=bool(zero_infinity))
    if reduction == "mean":
        losses = losses / constant(x.backend.asarray(x.backend.maximum(counts, 1), losses.dtype), x)
    losses = reduced(losses, reduction, dtype)
    return losses if batched or reduction != "none" else shape.reshape(losses, ())


def _lengths(what, lengths, batch, limit):
    """Lengths as a NumPy array of integers, one for each sequence."""
    array = lengths.backend.to_numpy(lengths.array) if isinstance(lengths, Tensor) else np.asarray(lengths)
    if array.dtype.kind not in "iu" and array.size:
        raise RuntimeError(f"ctc_loss expected {what} to be integers, got {array.dtype}")
    array = array.astype(np.int64).reshape(-1)
    if array.shape != (batch,):
        raise RuntimeError(f"ctc_loss expected {batch} {what}, one for each sequence, got {array.size}")
    if batch and (array.min() < 0 or (limit is not None and array.max() > limit)):
        raise RuntimeError(f"ctc_loss expected {what} in [0, {'...' if limit is None else limit}], got {array.tolist()}")
    return array


def _states(xp, targets, counts, blank, classes):
    """The states of a path (N, 2 S + 1): blanks and classes in turn; and where the state two before may be skipped from."""
    if targets.dtype not in dtypes.INTEGER:
        raise RuntimeError(f"ctc_loss expected targets of an integer dtype, got {dtypes.dtype_name(targets.dtype)}")
    padded = _padded(xp, targets, counts, blank, classes)
    batch, longest = padded.shape
    labels = xp.full((batch, 2 * longest + 1), blank, padded.dtype)
    labels[:, 1::2] = padded
    skip = xp.zeros(labels.shape, dtypes.bool_)
    skip[:, 2:] = (labels[:, 2:] != blank) & (labels[:, 2:] != labels[:, :-2])
    return labels, skip


def _padded(xp, targets, counts, blank, classes):
    """Targets as (N, S), with blanks behind the end of each."""
    array, batch = targets.array, len(counts)
    longest = int(counts.max(initial=0))
    used = xp.arange(longest) < xp.asarray(counts)[:, None]
    if array.ndim == 1:
        if array.size != counts.sum():
            raise RuntimeError(f"ctc_loss expected as many targets as target_lengths add up to, {int(counts.sum())}, got "
                               f"{array.size}")
        starts = xp.asarray(np.cumsum(counts) - counts)[:, None]
        index = xp.where(used, starts + xp.arange(longest), 0)
        array = array[index] if array.size else xp.zeros(index.shape, array.dtype)
    else:
        if array.ndim != 2 or array.shape[0] != batch or array.shape[1] < longest:
            raise RuntimeError(f"ctc_loss expected targets of shape ({batch}, S) with S >= {longest}, got {targets.shape}")
        array = array[:, :longest]
    if bool((used & ((array < 0) | (array >= classes))).any()):
        bad = array[used & ((array < 0) | (array >= classes))]
        raise IndexError(f"ctc_loss expected targets in [0, {classes - 1}] for {classes} classes, got {int(bad[0])}")
    return xp.where(used, array, blank)


# On tensors: the forward recursion as a composition, whose gradient is taken by the engine. A replay needs no values.


def _nothing(x, labels, skip, input_lengths, target_lengths, zero_infinity):
    return None, None, None


def _gradient_of_composition(g, x, alphas, losses, labels, skip, input_lengths, target_lengths, zero_infinity):
    likelihood = _log_likelihood(x, labels, skip, input_lengths, target_lengths)
    possible = likelihood.array > NEVER / 2
    outside = 0.0 if zero_infinity else float("nan")
    g = comparison.where(constant(possible, x), -g, outside)
    return grad(likelihood, x, g, create_graph=True)[0]


def _log_likelihood(x, labels, skip, input_lengths, target_lengths):
    xp = x.backend
    batch, states = labels.shape
    state = xp.arange(states)
    index = constant(xp.broadcast_to(labels, (x.shape[0], batch, states)), x)
    emitted = pointwise.clamp(gathering.gather(x, 2, index), min=NEVER)
    start = xp.broadcast_to(state < 2, labels.shape)
    alpha = comparison.where(constant(start, x), emitted[0], NEVER)
    edge = constant(xp.full((batch, 2), NEVER, x.dtype), x)
    for t in range(1, x.shape[0]):
        before = joining.cat([edge, alpha], 1)
        two_back = comparison.where(constant(skip, x), before[:, :-2], NEVER)
        after = pointwise.logaddexp(pointwise.logaddexp(alpha, before[:, 1:-1]), two_back) + emitted[t]
        alpha = comparison.where(constant((input_lengths > t)[:, None], x), after, alpha)
    last = 2 * target_lengths[:, None]
    ends = constant((state == last) | (state == last - 1), x)
    return reduction.logsumexp(comparison.where(ends, alpha, NEVER), 1)


METHODS = ()
ON_TENSORS = {"ctc_loss": _nothing, "ctc_gradient": _gradient_of_composition}
