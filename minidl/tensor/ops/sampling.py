"""Random tensors: uniform, normal, integers, permutations, and draws whose parameters are tensors.

All take `generator`, a minidl.Generator, by default the thread's run-time stream. Numbers are drawn on the CPU, so a seed
means the same on every device. Gradients with respect to parameters are zero, as in PyTorch.
"""

from __future__ import annotations

import math
from operator import index as as_int

import numpy as np

from ...autograd.op import Cast
from .. import creation, dtypes
from ..apply import op
from ..convert import resolve
from ..device import current_device
from ..inplace import check_writable, overwrite
from ..random import Generator, default_generator
from ..sizes import lengths_of
from ..tensor import Tensor, make_tensor
from .shape import broadcast_shapes, expand

__all__ = ["bernoulli", "multinomial", "normal", "poisson", "rand", "rand_like", "randint", "randint_like", "randn",
           "randn_like", "randperm"]


@op(Cast.KEEP)
def _drawn(xp, *parameters, value):
    """A sample whose distribution depends on parameters in no differentiable way."""
    return value, (lambda g: g * 0,) * len(parameters)


# With sizes

def rand(size, *more, generator=None, dtype=None, device=None, requires_grad=False):
    """Numbers uniform over [0, 1), of a shape."""
    shape, dtype = lengths_of("rand", size, more), _floating("rand", dtype)
    array = _stream(generator).uniform(shape, dtype, _device(device, generator))
    return _new(array, requires_grad)


def randn(size, *more, generator=None, dtype=None, device=None, requires_grad=False):
    """Standard normal numbers, of a shape."""
    shape, dtype = lengths_of("randn", size, more), _floating("randn", dtype)
    array = _stream(generator).normal(shape, dtype, _device(device, generator))
    return _new(array, requires_grad)


def randint(low=None, high=None, size=None, *, generator=None, dtype=dtypes.int64, device=None, requires_grad=False):
    """Integers from low (0 if not given) up to but without high: `randint(high, size)`, `randint(low, high, size)`."""
    if size is None and isinstance(high, (tuple, list)):
        high, size = None, high
    if not isinstance(size, (tuple, list)):
        raise TypeError(f"randint expected its size as a tuple or list, got {size!r}")
    low, high = (0, low) if high is None else (0 if low is None else low, high)
    dtype = dtypes.as_dtype(dtype)
    low, high = _bounds("randint", low, high, dtype)
    array = _stream(generator).integers(low, high, lengths_of("randint", size), dtype, _device(device, generator))
    return _new(array, requires_grad)


def randperm(n, *, generator=None, dtype=dtypes.int64, device=None, requires_grad=False):
    """The numbers 0 ... n-1 in random order."""
    n, = lengths_of("randperm", n)
    dtype = dtypes.as_dtype(dtype)
    if dtype == dtypes.bool_:
        raise NotImplementedError("randperm expected a floating or integer dtype, got bool")
    if n - 1 > _largest(dtype):
        raise RuntimeError(f"randperm expected a dtype that can hold {n - 1}, got {dtypes.dtype_name(dtype)}")
    return _new(_stream(generator).permutation(n, dtype, _device(device, generator)), requires_grad)


# Like a tensor

def rand_like(input, *, generator=None, dtype=None, device=None, requires_grad=False):
    """Numbers uniform over [0, 1), of the shape, dtype and device of `input`."""
    return rand(input.shape, generator=generator, dtype=dtype or input.dtype, device=device or input.device,
                requires_grad=requires_grad)


def randn_like(input, *, generator=None, dtype=None, device=None, requires_grad=False):
    """Standard normal numbers, of the shape, dtype and device of `input`."""
    return randn(input.shape, generator=generator, dtype=dtype or input.dtype, device=device or input.device,
                 requires_grad=requires_grad)


def randint_like(input, low=None, high=None, *, generator=None, dtype=None, device=None, requires_grad=False):
    """Integers from low (0 if not given) up to but without high, of the shape, dtype and device of `input`."""
    return randint(low, high, input.shape, generator=generator, dtype=dtype or input.dtype, device=device or input.device,
                   requires_grad=requires_grad)


# With parameters that are tensors

def normal(mean=0.0, std=1.0, size=None, *, generator=None, dtype=None, device=None, requires_grad=False):
    """Normal numbers with a mean and a standard deviation, each a number or a tensor; `size` where both are numbers.

    Raises:
        RuntimeError: if a standard deviation is negative.
    """
    tensors = [value for value in (mean, std) if isinstance(value, Tensor)]
    if not isinstance(std, Tensor) and not std >= 0:
        raise RuntimeError(f"normal expected a standard deviation that is not negative, got {std}")
    if not tensors:
        if size is None:
            raise TypeError("normal expected a size where mean and std are numbers, got none")
        out = randn(size, generator=generator, dtype=dtype, device=device)
        return _new(_scaled(out.array, std, mean), requires_grad)
    if size is not None:
        raise TypeError("normal expected no size where mean or std is a tensor, it is the shape of these")
    first = tensors[0]
    for tensor in tensors:
        _floating("normal", tensor.dtype)
    if isinstance(std, Tensor) and bool((std.array < 0).any()):
        raise RuntimeError("normal expected standard deviations that are not negative, got a negative one")
    shape = broadcast_shapes(*[tensor.shape for tensor in tensors])
    noise = _stream(generator).normal(shape, _wide(first.dtype), first.device)
    mean_array, std_array = (_widened(v) if isinstance(v, Tensor) else v for v in (mean, std))
    value = (noise * std_array + mean_array).astype(first.dtype, copy=False)
    return _drawn(*tensors, value=value)


def bernoulli(input, p=None, *, generator=None):
    """1 with a probability, else 0: with the probabilities in `input`, or with the number p in a tensor like it."""
    if p is None:
        _floating("bernoulli", input.dtype)
        return _drawn(input, value=_flips(input, input, generator))
    return _drawn(input, value=_flips(input, p, generator))


def _flips(input, p, generator):
    """Zeros and ones like `input` with probabilities p, a tensor that broadcasts to it or a number."""
    if isinstance(p, Tensor):
        _floating("bernoulli", p.dtype)
        p = _widened(p if p.shape == input.shape else expand(p, input.shape))
        if not bool(((p >= 0) & (p <= 1)).all()):
            raise RuntimeError("bernoulli expected probabilities in [0, 1], got others")
    elif not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli expected a probability in [0, 1], got {p}")
    kind = p.dtype if hasattr(p, "dtype") else dtypes.float64
    return (_stream(generator).uniform(input.shape, kind, input.device) < p).astype(input.dtype)


def poisson(input, generator=None):
    """Poisson numbers with the rates in `input`, in its dtype."""
    _floating("poisson", input.dtype)
    rates = np.asarray(input.numpy(), np.float64)
    if not bool((rates >= 0).all()):
        raise RuntimeError("poisson expected rates that are not negative, got others")
    counts = np.asarray(_stream(generator).numpy.poisson(rates)).astype(input.dtype)
    return _drawn(input, value=creation.as_tensor(counts, device=input.device).array)


def multinomial(input, num_samples, replacement=False, *, generator=None):
    """Indices drawn with the probabilities proportional to a vector, or to each row of a matrix.

    Args:
        num_samples: how many per row.
        replacement: an index may be drawn again.

    Shapes: (n,) to (num_samples,), (rows, n) to (rows, num_samples); int64.

    Raises:
        RuntimeError: if a weight is negative or not finite, a row is all zeros, or without replacement there are fewer than
            num_samples places.
    """
    num_samples = as_int(num_samples)
    weights, xp = input.array, input.backend
    if input.dtype not in dtypes.FLOATING or input.ndim not in (1, 2):
        raise RuntimeError(f"multinomial expected a vector or matrix of a floating dtype, got shape {input.shape} of "
                           f"{dtypes.dtype_name(input.dtype)}")
    if num_samples <= 0 or (not replacement and num_samples > input.shape[-1]):
        raise RuntimeError(f"multinomial expected a positive number of samples, without replacement at most the "
                           f"{input.shape[-1]} places of a row, got {num_samples}")
    weights = xp.reshape(xp.asarray(weights, dtypes.float64), (-1, input.shape[-1]))
    if not bool(xp.isfinite(weights).all()) or bool((weights < 0).any()):
        raise RuntimeError("multinomial expected finite weights that are not negative, got others")
    if not bool((xp.sum(weights, 1) > 0).all()):
        raise RuntimeError("multinomial expected a positive weight in each row, got a row without")
    draw = _with_replacement if replacement else _without_replacement
    chosen = xp.asarray(draw(xp, weights, num_samples, _stream(generator), input.device), dtypes.int64)
    return make_tensor(xp.reshape(chosen, (*input.shape[:-1], num_samples)), None)


def _with_replacement(xp, weights, count, stream, device):
    """Each row's cumulated weights take up an interval of length 1, so that one search serves all rows."""
    rows, places = weights.shape
    starts = xp.reshape(xp.arange(rows, dtype=dtypes.float64), (rows, 1))
    ends = xp.cumsum(weights, 1)
    ends = ends / ends[:, -1:] + starts
    grid = 1 << 32  # coarse enough for the sum with a row's number to be exact
    at = xp.floor(stream.uniform((rows, count), dtypes.float64, device) * grid) / grid + starts
    found = xp.searchsorted(xp.reshape(ends, (-1,)), xp.reshape(at, (-1,)), side="right")
    return xp.reshape(found, (rows, count)) - xp.asarray(starts, dtypes.int64) * places


def _without_replacement(xp, weights, count, stream, device):
    """The places whose exponential waiting times are the shortest (Efraimidis and Spirakis, 2006)."""
    waits = -xp.log1p(-stream.uniform(weights.shape, dtypes.float64, device))
    rates = xp.where(weights > 0, weights, 1.0)
    return xp.argsort(xp.where(weights > 0, waits / rates, float("inf")), 1)[:, :count]


# In place

def uniform_(input, from_=0.0, to=1.0, *, generator=None):
    """Fill the tensor with numbers uniform over [from_, to)."""
    _floating("uniform_", input.dtype)
    limit = float(dtypes.finfo(input.dtype).max)
    if not -limit <= from_ <= to <= limit or to - from_ > limit:
        raise RuntimeError(f"uniform_ expected finite bounds of {dtypes.dtype_name(input.dtype)}, the lower one first, got "
                           f"{from_} and {to}")
    u = _stream(generator).uniform(input.shape, input.dtype, input.device)
    return _fill("uniform_", input, _scaled(u, to - from_, from_))


def normal_(input, mean=0.0, std=1.0, *, generator=None):
    """Fill the tensor with normal numbers."""
    _floating("normal_", input.dtype)
    if not std >= 0:
        raise RuntimeError(f"normal_ expected a standard deviation that is not negative, got {std}")
    z = _stream(generator).normal(input.shape, _wide(input.dtype), input.device)
    return _fill("normal_", input, _scaled(z, std, mean))


def log_normal_(input, mean=1.0, std=2.0, *, generator=None):
    """Fill the tensor with e to the power of normal numbers."""
    _floating("log_normal_", input.dtype)
    if not std > 0:
        raise RuntimeError(f"log_normal_ expected a positive standard deviation, got {std}")
    z = _stream(generator).normal(input.shape, _wide(input.dtype), input.device)
    return _fill("log_normal_", input, input.backend.exp(_scaled(z, std, mean)))


def bernoulli_(input, p=0.5, *, generator=None):
    """Fill the tensor with ones with a probability, a number or a tensor that broadcasts to this one, and zeros."""
    return _fill("bernoulli_", input, _flips(input, p, generator))


def random_(input, from_=None, to=None, *, generator=None):
    """Fill the tensor with integers: `random_(to)` from 0, `random_(from_, to)`, without to itself; `random_()` with all that
    are not negative, for floating dtypes those up to which it holds every integer."""
    if to is None:
        from_, to = 0, _largest(input.dtype) + 1 if from_ is None else from_
    low, high = _bounds("random_", 0 if from_ is None else from_, to, input.dtype)
    return _fill("random_", input, _stream(generator).integers(low, high, input.shape, input.dtype, input.device))


def exponential_(input, lambd=1.0, *, generator=None):
    """Fill the tensor with exponential numbers of a rate."""
    if input.dtype not in dtypes.FLOATING or not lambd > 0:
        raise RuntimeError(f"exponential_ expected a floating tensor and a positive rate, got {dtypes.dtype_name(input.dtype)} "
                           f"and {lambd}")
    waits = _stream(generator).numpy.standard_exponential(input.shape, _wide(input.dtype))
    return _fill_from_cpu("exponential_", input, waits * (1.0 / lambd))


def geometric_(input, p, *, generator=None):
    """Fill the tensor with the numbers of trials up to the first success of probability p."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expected a probability in (0, 1), got {p}")
    return _fill_from_cpu("geometric_", input, _stream(generator).numpy.geometric(p, input.shape))


def cauchy_(input, median=0.0, sigma=1.0, *, generator=None):
    """Fill the tensor with Cauchy numbers."""
    if input.dtype not in dtypes.FLOATING or not sigma > 0:
        raise RuntimeError(f"cauchy_ expected a floating tensor and a positive sigma, got {dtypes.dtype_name(input.dtype)} "
                           f"and {sigma}")
    return _fill_from_cpu("cauchy_", input, _stream(generator).numpy.standard_cauchy(input.shape) * sigma + median)


def _fill(name, input, values):
    check_writable(input, name)
    values = input.backend.asarray(values, input.dtype)
    return overwrite(input, _drawn(make_tensor(input.array, input.node), value=values), name)


def _fill_from_cpu(name, input, values):
    return _fill(name, input, creation.as_tensor(np.asarray(values).astype(input.dtype), device=input.device).array)


# Arguments

def _stream(generator):
    if generator is None:
        return default_generator()
    if not isinstance(generator, Generator):
        raise TypeError(f"expected a minidl.Generator or None as generator, got {type(generator).__name__}")
    return generator


def _device(device, generator):
    if device is None:
        device = current_device() if generator is None else generator.device
    return resolve(device)


def _floating(name, dtype):
    dtype = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    if dtype not in dtypes.FLOATING:
        raise NotImplementedError(f"{name} expected a floating dtype, got {dtypes.dtype_name(dtype)}")
    return dtype


def _wide(dtype):
    return dtypes.accumulation_dtype(dtype)


def _widened(tensor):
    return tensor.backend.widen(tensor.array)


def _scaled(array, scale, shift):
    """array * scale + shift in its own dtype, halves rounded once."""
    dtype = array.dtype
    return (array.astype(_wide(dtype), copy=False) * float(scale) + float(shift)).astype(dtype, copy=False)


def _new(array, requires_grad):
    out = make_tensor(array, None)
    return out.requires_grad_() if requires_grad else out


def _largest(dtype):
    """The integer up to which a dtype holds every integer."""
    if dtype in dtypes.FLOATING:
        return round(2 / dtypes.finfo(dtype).eps)
    return dtypes.iinfo(dtype).max if dtype in dtypes.INTEGER else 1


def _bounds(name, low, high, dtype):
    """Bounds of integers, checked against each other and against what the dtype can hold."""
    if isinstance(low, bool) or isinstance(high, bool) or high is None:
        raise TypeError(f"{name} expected integer bounds, got {low!r} and {high!r}")
    low, high = as_int(low), as_int(high)
    if low >= high:
        raise RuntimeError(f"{name} expected a lower bound below the upper one, got {low} and {high}")
    if dtype in dtypes.FLOATING:
        least, most = dtypes.finfo(dtype).min, dtypes.finfo(dtype).max
    else:
        least, most = (dtypes.iinfo(dtype).min, dtypes.iinfo(dtype).max) if dtype in dtypes.INTEGER else (0, 1)
    if low < math.ceil(least) or high - 1 > math.floor(most):
        raise RuntimeError(f"{name} expected bounds that {dtypes.dtype_name(dtype)} can hold, got {low} and {high}")
    return low, high


METHODS = (bernoulli, bernoulli_, cauchy_, exponential_, geometric_, log_normal_, multinomial, normal_, random_, uniform_)
IN_PLACE = ()
ON_TENSORS: dict = {}
