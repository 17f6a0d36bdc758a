"""`out=`: results written into a tensor that the caller supplies. One wrapper adds it to the exported functions."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ..autograd import edits
from ..autograd.mode import state
from . import autocast, dtypes
from .checked import explained
from .tensor import Tensor

# Public functions that take out=, as in PyTorch.
NAMES = """
abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr all amax amin aminmax any arange arccos arccosh arcsin
arcsinh arctan arctan2 arctanh argmax argmin argsort asin asinh atan atan2 atanh baddbmm bernoulli bitwise_and
bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor bmm bucketize cat ceil clamp clamp_max clamp_min
clip column_stack concat concatenate copysign cos cosh cross cummax cummin cumprod cumsum deg2rad diag diff div divide dot
dstack empty eq erf erfc erfinv exp exp2 expm1 eye fix float_power floor floor_divide fmax fmin fmod frac full gather ge ger
greater greater_equal gt heaviside histc hstack hypot index_add index_copy index_select inner isin isneginf isposinf kron
kthvalue le lerp less less_equal linspace log log10 log1p log2 logaddexp logaddexp2 logcumsumexp logical_and logical_not
logical_or logical_xor logit logspace logsumexp lt masked_select matmul max maximum mean median min minimum mm msort mul
multinomial multiply mv nan_to_num nanmean nanmedian nanquantile nansum ne neg negative nonzero norm normal not_equal ones outer
polygamma pow prod quantile rad2deg rand randint randn randperm reciprocal remainder round rsqrt scatter scatter_add
scatter_reduce searchsorted sgn sigmoid sign signbit sin sinc sinh softmax sort special_logsumexp sqrt square stack std sub
subtract sum take take_along_dim tan tanh tensordot topk tril triu true_divide trunc vdot var vstack where xlogy zeros
log_softmax linalg_norm linalg_vector_norm narrow_copy renorm range
""".split()
# Those whose result is stored in exactly its own dtype, as in PyTorch; others cast it. So do all with several results.
EXACT = frozenset("""
abs absolute addbmm addmm addmv all amax amin any argmax argmin argsort baddbmm bitwise_not bmm bucketize ceil clamp clamp_max
clamp_min clip cross diag diff dot fix float_power floor frac gather heaviside histc index_add index_copy index_select inner
isin isneginf isposinf linalg_cross log_softmax logcumsumexp masked_select matmul matrix_norm matrix_power mm msort
multinomial mv nan_to_num nanquantile narrow_copy neg negative nonzero norm quantile renorm round scatter scatter_add
scatter_reduce searchsorted sgn sign signbit softmax take take_along_dim tensordot tril triu trunc vdot vector_norm where
""".split())
# Those that PyTorch computes in out's dtype, whatever that is.
FILLS = frozenset("arange empty eye full linspace logspace ones randperm range zeros".split())


def with_out(function: Callable) -> Callable:
    """The function with a keyword argument `out`: a tensor, or a tuple of them, that takes the result."""

    @functools.wraps(function)
    def wrapper(*args, out=None, **kwargs):
        if out is None:
            try:
                return function(*args, **kwargs)
            except AttributeError as error:
                raise explained(error, function, args, kwargs) from None
        before, state.grad = state.grad, False
        try:
            with autocast.off:
                result = function(*args, **kwargs)
        except AttributeError as error:
            raise explained(error, function, args, kwargs) from None
        finally:
            state.grad = before
        if before and any(isinstance(a, Tensor) and a.node is not None for a in (*args, *kwargs.values())):
            raise RuntimeError(f"{function.__name__} with out= is not recorded, so its arguments must not require grad; "
                               f"leave out= away, or run it inside `with minidl.no_grad():`")
        return _store_all(function.__name__, result, out, (*args, *kwargs.values()))

    wrapper.checked = True  # type: ignore[attr-defined]
    signature = inspect.signature(function)
    if not any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values()):
        parameter = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None)
        wrapper.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[*signature.parameters.values(), parameter])
    return wrapper


def _store_all(name: str, result: Any, out: Any, inputs: tuple) -> Any:
    """Write a result, or each of several, into out."""
    if isinstance(result, Tensor):
        return _store(name, result, out, inputs, name in EXACT)
    if not isinstance(out, (tuple, list)) or len(out) != len(result):
        raise TypeError(f"{name} expected out to be a tuple of {len(result)} tensors, got {type(out).__name__}")
    stored = [_store(name, part, target, inputs, True) for part, target in zip(result, out)]
    return type(result)(*stored) if hasattr(result, "_fields") else tuple(stored)


def _store(name: str, result: Tensor, out: Any, inputs: tuple, exact: bool) -> Tensor:
    if not isinstance(out, Tensor):
        raise TypeError(f"{name} expected out to be a Tensor, got {type(out).__name__}")
    if out.node is not None and state.grad:
        raise RuntimeError(f"{name} expected an out that does not require grad; pass out.detach()")
    if out.device != result.device:
        raise RuntimeError(f"{name} expected out on {result.device}, got a tensor on {out.device}")
    _check_dtype(name, result.dtype, out.dtype, exact)
    _check_memory(name, out.array, inputs)
    if out.shape != result.shape:
        if out.numel():
            raise RuntimeError(f"{name} expected out of shape {result.shape}, got {out.shape}")
        out.array = out.backend.empty(result.shape, out.dtype)  # an empty out takes the result's shape
    out.array[...] = result.array
    edits.record_edit(out.array)
    return out


def _check_dtype(name: str, result: Any, out: Any, exact: bool) -> None:
    if result == out or name in FILLS or (name in ("all", "any") and out == dtypes.uint8):
        return
    if exact or dtypes.category(result) > dtypes.category(out):
        raise RuntimeError(f"{name} cannot store a result of dtype {dtypes.dtype_name(result)} in an out of dtype "
                           f"{dtypes.dtype_name(out)}")


def _check_memory(name: str, out: Any, inputs: tuple) -> None:
    """Every element of out needs a place of its own, which no input reads under another index."""
    if any(step == 0 and n > 1 for step, n in zip(out.strides, out.shape)):
        raise RuntimeError(f"{name} expected an out with a place in memory for every element, got an expanded tensor; clone it")
    if not isinstance(out, np.ndarray):
        return
    if not out.flags.writeable:
        raise RuntimeError(f"{name} expected an out that may be written, got a read-only tensor; clone it")
    for value in inputs:
        for part in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(part, Tensor) and part.numel() <= out.size and _overlap(part.array, out):
                raise RuntimeError(f"{name} expected an out that shares no memory with an input, or is the input itself; clone "
                                   f"one of them")


def _overlap(input: Any, out: np.ndarray) -> bool:
    if not isinstance(input, np.ndarray) or not np.may_share_memory(input, out):
        return False
    if input.ctypes.data == out.ctypes.data and input.shape == out.shape and input.strides == out.strides:
        return False
    try:
        return np.shares_memory(input, out, max_work=10000)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return False
