"""minidl: a deep-learning framework over NumPy and CuPy, with PyTorch's names and semantics."""

from . import amp, autograd, cuda, data, linalg, nn, optim
from .autograd.mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .nn.summary import summary
from .tensor import dtypes as _dtypes
from .tensor.checked import check_all as _check_all
from .tensor.checkpoint import checkpoint as _checkpoint
from .tensor.conversion import from_dlpack
from .tensor.creation import (
    arange, as_tensor, empty, empty_like, eye, from_numpy, full, full_like, linspace, logspace, ones, ones_like,
    scalar_tensor, tensor, zeros, zeros_like,
)
from .tensor.ops.activation import (
    celu, celu_, hardshrink, prelu, relu, relu_, rrelu, rrelu_, selu, selu_, threshold, threshold_,
)
from .tensor.ops.aliases import (
    absolute, arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh, clip, divide, fix, greater, greater_equal, less,
    less_equal, multiply, negative, not_equal, subtract, true_divide,
)
from .tensor.ops.arithmetic import (
    abs, add, addcdiv, addcmul, div, floor_divide, fmod, lerp, mul, neg, positive, reciprocal, remainder, rsub, sgn, sign,
    sub,
)
from .tensor.ops.bitwise import bitwise_and, bitwise_left_shift, bitwise_not, bitwise_or, bitwise_right_shift, bitwise_xor
from .tensor.ops.comparison import (
    allclose, copysign, eq, equal, fmax, fmin, ge, gt, heaviside, isclose, isfinite, isinf, isnan, isneginf, isposinf,
    isreal, le, logical_and, logical_not, logical_or, logical_xor, lt, maximum, minimum, ne, signbit, where,
)
from .tensor.ops.convolution import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d
from .tensor.ops.counting import bincount, histc, unique, unique_consecutive
from .tensor.ops.cumulative import cummax, cummin, cumprod, cumsum, diff, logcumsumexp, trapezoid, trapz
from .tensor.ops.diagonal import diag, diag_embed, diagonal, tril, tril_indices, triu, triu_indices
from .tensor.ops.einsum import einsum
from .tensor.ops.extrema import amax, amin, aminmax, argmax, argmin, max, min
from .tensor.ops.flipping import flip, fliplr, flipud, repeat, repeat_interleave, roll, rot90, tile
from .tensor.ops.gathering import (
    gather, index_add, index_copy, index_fill, index_select, put, scatter, scatter_add, scatter_reduce, take,
    take_along_dim,
)
from .tensor.ops.indexing import diagonal_scatter, index_put, select_scatter, slice_scatter
from .tensor.ops.joining import (
    block_diag, cartesian_prod, cat, column_stack, combinations, concat, concatenate, dstack, hstack, meshgrid, stack,
    vstack,
)
from .tensor.ops.linalg import (
    addbmm, addmm, addmv, addr, baddbmm, bmm, chain_matmul, cross, dot, ger, inner, kron, matmul, matrix_power, mm, mv,
    outer, tensordot, trace, vdot,
)
from .tensor.ops.norm import dist, norm
from .tensor.ops.ordering import argsort, kthvalue, msort, sort, topk
from .tensor.ops.pointwise import (
    ceil, clamp, clamp_max, clamp_min, erf, erfc, erfinv, exp, exp2, expm1, float_power, floor, frac, log, log10, log1p,
    log2, logaddexp, logaddexp2, logit, nan_to_num, pow, round, rsqrt, sigmoid, sqrt, square, trunc, xlogy,
)
from .tensor.ops.quantile import median, mode, nanmedian, nanquantile, quantile
from .tensor.ops.reduction import (
    all, any, count_nonzero, logsumexp, mean, nanmean, nansum, prod, std, std_mean, sum, var, var_mean,
)
from .tensor.ops.sampling import (
    bernoulli, multinomial, normal, poisson, rand, rand_like, randint, randint_like, randn, randn_like, randperm,
)
from .tensor.ops.selection import (
    argwhere, bucketize, fill, isin, masked_fill, masked_scatter, masked_select, nonzero, searchsorted,
)
from .tensor.ops.shape import (
    atleast_1d, atleast_2d, atleast_3d, broadcast_shapes, broadcast_tensors, broadcast_to, clone, contiguous, expand,
    expand_as, flatten, moveaxis, movedim, permute, ravel, reshape, reshape_as, squeeze, sum_to_size, swapaxes, swapdims, t,
    transpose, unflatten, unsqueeze, view, view_as,
)
from .tensor.ops.similarity import cdist, cosine_similarity, pdist
from .tensor.ops.softmax import log_softmax, softmax
from .tensor.ops.splitting import chunk, dsplit, hsplit, narrow, select, split, tensor_split, unbind, unfold, vsplit
from .tensor.ops.trigonometry import (
    acos, acosh, asin, asinh, atan, atan2, atanh, cos, cosh, deg2rad, hypot, rad2deg, sin, sinc, sinh, tan, tanh,
)
from .tensor.device import Device
from .tensor.device import Device as device
from .tensor.dtypes import bool_ as bool
from .tensor.dtypes import float32 as float
from .tensor.dtypes import int32 as int
from .tensor.dtypes import (
    can_cast, double, finfo, float16, float32, float64, get_default_dtype, half, iinfo, int8, int16, int32, int64, long,
    promote_types, result_type, set_default_dtype, short, uint8,
)
from .tensor.inspection import is_floating_point, is_same_size, is_tensor, numel
from .tensor.memory import memory_stats, track_memory
from .tensor.out import NAMES as _NAMES
from .tensor.out import with_out as _with_out
from .tensor.serialization import load, save
from .tensor.random import Generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from .tensor.tensor import Tensor
from .tensor.threads import get_num_threads, set_num_threads
from .version import __version__

autograd.checkpoint = _checkpoint  # type: ignore[attr-defined]  # it needs the Tensor, a floor above autograd

for _name in _NAMES:
    if _name in globals():
        globals()[_name] = _with_out(globals()[_name])
_check_all(globals())


def __getattr__(name):
    if name == "bfloat16":  # loads ml_dtypes
        return _dtypes.bfloat16
    raise AttributeError(f"module 'minidl' has no attribute {name!r}")
