"""Arguments of pooling: windows, their number along each axis, and what inputs they fit. Their errors are PyTorch's kinds."""

from __future__ import annotations

from . import dtypes
from .spatial import lengths_per_axis


def window_arguments(name, axes, kernel_size, stride, padding, dilation, check=True):
    """The four per axis; a stride that is not given is the kernel's. With check, RuntimeError for what makes no windows."""
    kernel = lengths_per_axis(name, "kernel_size", kernel_size, axes, 1 if check else None)
    given = stride is not None and not (isinstance(stride, (tuple, list)) and not stride)
    stride = lengths_per_axis(name, "stride", stride, axes, 1 if check else None) if given else kernel
    padding = lengths_per_axis(name, "padding", padding, axes, 0 if check else None)
    dilation = lengths_per_axis(name, "dilation", dilation, axes, 1)
    if check and any(2 * p > k for p, k in zip(padding, kernel)):
        raise RuntimeError(f"{name} expected padding of at most half of kernel_size {kernel}, got {padding}")
    return kernel, stride, padding, dilation


def count_windows(name, length, how, ceil_mode):
    """Windows along each axis; in ceil_mode a last one counts that begins before the end of the input or its padding."""
    size = []
    for n, k, s, p, d in zip(length, *how):
        count = (n + 2 * p - d * (k - 1) - 1 + (s - 1 if ceil_mode else 0)) // s + 1
        size.append(count - 1 if ceil_mode and (count - 1) * s >= n + p else count)
    if min(size) < 1:
        raise RuntimeError(f"{name} expected a padded input at least as large as a window, got lengths {length} with padding "
                           f"{how[2]} for kernel_size {how[0]} with dilation {how[3]}")
    return tuple(size)


def adaptive_size(name, axes, input, output_size, filled):
    """Lengths of the result; the input's axes from number `filled` on must not be empty."""
    if isinstance(output_size, (tuple, list)):
        if axes > 1 and len(output_size) >= input.ndim:
            raise ValueError(f"{name} expected input of more axes than output_size {output_size}, got shape {input.shape}")
        if len(output_size) != axes:
            raise RuntimeError(f"{name} expected output_size of {axes} lengths or one integer, got {output_size}")
    check_input(name, axes, input, filled)
    check_dtype(name, input, tuple(dtypes.FLOATING))
    if isinstance(output_size, (tuple, list)):
        output_size = tuple(n if s is None else s for s, n in zip(output_size, input.shape[-axes:]))
    return lengths_per_axis(name, "output_size", output_size, axes, 0)


def check_input(name, axes, input, filled=None):
    """RuntimeError for a wrong number of axes or an empty one from number `filled` on: by default, any but the batch."""
    filled = input.ndim - axes - 1 if filled is None else filled
    if input.ndim not in (axes + 1, axes + 2) or 0 in input.shape[filled:]:
        raise RuntimeError(f"{name} expected input of {axes + 2} axes, or {axes + 1} without a batch, of which only the batch "
                           f"may be empty, got shape {input.shape}")


def check_dtype(name, input, allowed):
    """NotImplementedError for a tensor of another dtype."""
    if input.dtype not in allowed:
        names = ", ".join(sorted(dtypes.dtype_name(d) for d in allowed))
        raise NotImplementedError(f"{name} expected a tensor of {names}, got {dtypes.dtype_name(input.dtype)}; cast it first")
