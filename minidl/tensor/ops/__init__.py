"""The functions of minidl, a file per family: an op's value and pullback side by side, and what is composed of ops.

Each module says in METHODS which of its functions are methods of Tensor under their own name, in IN_PLACE which have
a form with a trailing underscore as well, and in ON_TENSORS which names of Backend its functions stand for when a
pullback runs on Tensors.
"""

from . import (
    activation, aliases, arithmetic, attention, bitwise, comparison, convolution, counting, cross_entropy, ctc,
    cumulative, diagonal, dropout, einsum, embedding, extrema, flipping, gathering, indexing, joining, linalg,
    linalg_norm, linear, loss, margin_loss, norm, normalization, ordering, padding, pointwise, pooling, quantile,
    recurrent, reduction, resampling, sampling, segment, selection, shape, similarity, softmax, splitting, trigonometry,
)

MODULES = (
    activation, aliases, arithmetic, attention, bitwise, comparison, convolution, counting, cross_entropy, ctc,
    cumulative, diagonal, dropout, einsum, embedding, extrema, flipping, gathering, indexing, joining, linalg,
    linalg_norm, linear, loss, margin_loss, norm, normalization, ordering, padding, pointwise, pooling, quantile,
    recurrent, reduction, resampling, sampling, segment, selection, shape, similarity, softmax, splitting, trigonometry,
)
