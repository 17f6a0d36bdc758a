"""Losses that ask for a margin: between classes, between pairs, between triplets."""

from __future__ import annotations

from ...autograd.op import Cast
from .. import dtypes
from ..apply import composed
from . import activation, comparison, gathering, pointwise, reduction, similarity
from .loss import check_reduction, constant, in_float32, reduced
from .shape import reshape

__all__ = [
    "cosine_embedding_loss", "hinge_embedding_loss", "margin_ranking_loss", "multi_margin_loss", "multilabel_margin_loss",
    "multilabel_soft_margin_loss", "soft_margin_loss", "triplet_margin_loss", "triplet_margin_with_distance_loss",
]


@composed(Cast.FULL)
def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction="mean"):
    """1 - cosine similarity where target is 1, max(0, similarity - margin) where it is -1.

    Shapes: input1 and input2 (N, D), target (N,); or (D,) and ().
    """
    check_reduction("cosine_embedding_loss", reduction)
    if target.ndim > 1 or input1.ndim != target.ndim + 1 or input2.ndim != target.ndim + 1:
        raise RuntimeError(f"cosine_embedding_loss expected inputs of shape (N, D) and target (N,), or (D,) and (), got "
                           f"{input1.shape}, {input2.shape} and {target.shape}")
    dtype, a, b = in_float32(input1, input2)
    tiny = 1e-12
    norms = (_sum(a * a, -1) + tiny) * (_sum(b * b, -1) + tiny)
    cosine = _sum(a * b, -1) / pointwise.sqrt(norms)
    return reduced(_where(target, target.array == 1, 1 - cosine, 0.0)
                   + _where(target, target.array == -1, pointwise.clamp(cosine - margin, min=0), 0.0), reduction, dtype)


@composed(Cast.FULL)
def hinge_embedding_loss(input, target, margin=1.0, reduction="mean"):
    """input where target is 1, max(0, margin - input) where it is -1. Shapes: any that broadcast."""
    check_reduction("hinge_embedding_loss", reduction)
    dtype, input = in_float32(input)
    far = pointwise.clamp(margin - input, min=0)
    losses = _where(target, target.array != 1, far, 0.0) + _where(target, target.array != -1, input, 0.0)
    return reduced(losses, reduction, dtype)


@composed(Cast.FULL)
def margin_ranking_loss(input1, input2, target, margin=0.0, reduction="mean"):
    """max(0, -target (input1 - input2) + margin): target 1 asks for a larger input1, -1 for a larger input2."""
    check_reduction("margin_ranking_loss", reduction)
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError(f"margin_ranking_loss expected tensors of as many axes, got shapes {input1.shape}, "
                           f"{input2.shape} and {target.shape}")
    dtype, input1, input2, target = in_float32(input1, input2, target)
    return reduced(pointwise.clamp(-target * (input1 - input2) + margin, min=0), reduction, dtype)


@composed(Cast.FULL)
def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, reduction="mean"):
    """Sum over the wrong classes of max(0, margin - input[target] + input)^p, divided by the number of classes.

    Args:
        p: 1 or 2.
        weight: a factor for each target class.

    Shapes: input (N, C) or (C,), target (N,) or (), weight (C,).

    Raises:
        RuntimeError: for a class index that is out of range.
    """
    check_reduction("multi_margin_loss", reduction)
    if p not in (1, 2):
        raise ValueError(f"multi_margin_loss expected p to be 1 or 2, got {p}")
    if weight is not None and weight.ndim != 1:
        raise ValueError(f"multi_margin_loss expected weight of one axis, got shape {weight.shape}")
    rows, index = _rows("multi_margin_loss", input, target)
    index = index.reshape(-1) if index.size == len(rows.array) else index
    if index.shape != rows.shape[:1]:
        raise RuntimeError(f"multi_margin_loss expected target of shape {input.shape[:-1]} for input of shape {input.shape}, "
                           f"got {target.shape}")
    dtype, rows = in_float32(rows)
    xp, classes = rows.backend, rows.shape[1]
    _check_range("multi_margin_loss", xp, index, classes)
    if weight is not None and weight.shape != (classes,):
        raise RuntimeError(f"multi_margin_loss expected weight of shape ({classes},), got {weight.shape}")
    of_target = gathering.gather(rows, 1, constant(index[:, None], rows))
    losses = activation.relu(margin - of_target + rows)
    losses = losses * losses if p == 2 else losses
    losses = _where(rows, xp.arange(classes) != index[:, None], losses, 0.0)
    if weight is not None:
        losses = losses * constant(xp.asarray(weight.array, losses.dtype)[index][:, None], rows)
    return _per_sample(_sum(losses, 1) / classes, input, reduction, dtype)


@composed(Cast.FULL)
def multilabel_margin_loss(input, target, reduction="mean"):
    """Sum over the target classes and the others of max(0, 1 - (input[target] - input[other])), over the classes.

    Shapes: input (N, C) or (C,); target the same, each row class indices up to the first -1.
    """
    check_reduction("multilabel_margin_loss", reduction)
    if input.shape != target.shape:
        raise RuntimeError(f"multilabel_margin_loss expected target of input's shape {input.shape}, got {target.shape}")
    rows, index = _rows("multilabel_margin_loss", input, target)
    dtype, rows = in_float32(rows)
    xp, classes = rows.backend, rows.shape[1]
    index = index.reshape(rows.shape)
    given = xp.cumsum(index < 0, 1) == 0
    index = xp.where(given, index, 0)
    _check_range("multilabel_margin_loss", xp, index, classes)
    others = ~((index[:, :, None] == xp.arange(classes)) & given[:, :, None]).any(1)
    of_targets = gathering.gather(rows, 1, constant(index, rows))
    gaps = 1 - reshape(of_targets, -1, classes, 1) + reshape(rows, -1, 1, classes)
    losses = _where(rows, given[:, :, None] & others[:, None, :], activation.relu(gaps), 0.0)
    return _per_sample(_sum(losses, (1, 2)) / max(classes, 1), input, reduction, dtype)


@composed(Cast.FULL)
def multilabel_soft_margin_loss(input, target, weight=None, reduction="mean"):
    """Binary cross-entropy of the logits of each class, averaged over the classes.

    Shapes: input and target (..., C), weight broadcasts against them.
    """
    check_reduction("multilabel_soft_margin_loss", reduction)
    if not input.ndim:
        raise IndexError("multilabel_soft_margin_loss expected input and target of shape (..., C), got a 0-d input")
    dtype, input, target, weight = in_float32(input, target, weight)
    losses = -(target * activation.logsigmoid(input) + (1 - target) * activation.logsigmoid(-input))
    losses = losses if weight is None else losses * weight
    return reduced(_sum(losses, -1) / input.shape[-1], reduction, dtype)


@composed(Cast.FULL)
def soft_margin_loss(input, target, reduction="mean"):
    """log(1 + exp(-target input)), with targets 1 and -1."""
    check_reduction("soft_margin_loss", reduction)
    dtype, input, target = in_float32(input, target)
    return reduced(-activation.logsigmoid(target * input), reduction, dtype)


@composed(Cast.FULL)
def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, reduction="mean"):
    """max(0, distance(anchor, positive) - distance(anchor, negative) + margin), with the p-norm of differences.

    Args:
        p, eps: of pairwise_distance.
        swap: use the distance from positive to negative where it is smaller than that from the anchor.

    Shapes: (N, D) or (D,).
    """
    _check_triplet("triplet_margin_loss", anchor, positive, negative, margin, reduction)
    dtype, anchor, positive, negative = in_float32(anchor, positive, negative)

    def distance(a, b):
        return similarity.pairwise_distance(a, b, p, eps)

    return reduced(_triplet(anchor, positive, negative, distance, margin, swap), reduction, dtype)


@composed(Cast.FULL)
def triplet_margin_with_distance_loss(anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False,
                                      reduction="mean"):
    """triplet_margin_loss with a distance of one's own.

    Args:
        distance_function: of two tensors; default pairwise_distance.
    """
    _check_triplet("triplet_margin_with_distance_loss", anchor, positive, negative, margin, reduction)
    dtype, anchor, positive, negative = in_float32(anchor, positive, negative)
    distance = similarity.pairwise_distance if distance_function is None else distance_function
    return reduced(_triplet(anchor, positive, negative, distance, margin, swap), reduction, dtype)


def _triplet(anchor, positive, negative, distance, margin, swap):
    far = distance(anchor, negative)
    if swap:
        far = comparison.minimum(far, distance(positive, negative))
    return pointwise.clamp(margin + distance(anchor, positive) - far, min=0)


def _check_triplet(name, anchor, positive, negative, margin, reduction_):
    check_reduction(name, reduction_)
    if margin <= 0:
        raise ValueError(f"{name} expected margin > 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(f"{name} expected tensors of as many axes, got shapes {anchor.shape}, {positive.shape} and "
                           f"{negative.shape}")


def _rows(name, input, target):
    """Input as (N, C) and the target's array with a leading axis of samples. A 0-d input counts as (1,)."""
    if input.ndim > 2 or (input.ndim == 2 and input.shape[1] == 0) or target.ndim > max(input.ndim, 1):
        raise RuntimeError(f"{name} expected input of shape (N, C) or (C,), got {input.shape}, and target {target.shape}")
    if target.dtype not in dtypes.INTEGER:
        raise RuntimeError(f"{name} expected class indices of an integer dtype, got {dtypes.dtype_name(target.dtype)}")
    if input.ndim == 2:
        return input, target.array
    return reshape(input, 1, -1), target.array.reshape(1, -1)


def _check_range(name, xp, index, classes):
    if xp.any_outside(index, classes):
        bad = index[(index < 0) | (index >= classes)]
        raise RuntimeError(f"{name} expected class indices in [0, {classes - 1}] for {classes} classes, got {int(bad[0])}")


def _per_sample(losses, input, reduction_, dtype):
    losses = reduced(losses, reduction_, dtype)
    return reshape(losses, ()) if input.ndim < 2 and reduction_ == "none" else losses


def _where(like, condition, a, b):
    return comparison.where(constant(condition, like), a, b)


def _sum(x, dim):
    return reduction.sum(x, dim)


METHODS = ()
ON_TENSORS: dict = {}
