"""Views that read memory in steps of their own, diagonals and overlapping windows, and how their gradients go back."""

from __future__ import annotations

from typing import Any

from ..dtypes import accumulation_dtype


class StridedKernels:
    """Diagonals and windows."""

    module: Any
    zeros: Any
    device_type: str

    def diagonal_view(self, x: Any, offset: int, axis1: int, axis2: int) -> Any:
        """The diagonal of two axes as a last axis; a view that can be written."""
        view = self.module.diagonal(x, offset, axis1, axis2)
        if self.device_type == "cpu":
            view.flags.writeable = x.flags.writeable  # NumPy's is read-only, CuPy's is not
        return view

    def put_diagonal(self, g: Any, shape: tuple, offset: int, axis1: int, axis2: int) -> Any:
        """zeros(shape) with g on a diagonal; the gradient of diagonal_view."""
        out = self.zeros(shape, g.dtype)
        self.diagonal_view(out, offset, axis1, axis2)[...] = g
        return out

    def windows(self, x: Any, axis: int, size: int, step: int) -> Any:
        """Every step-th window of `size` elements along an axis; the window becomes a last axis. A view."""
        count = (x.shape[axis] - size) // step + 1
        shape = (*x.shape[:axis], count, *x.shape[axis + 1:], size)
        strides = (*x.strides[:axis], x.strides[axis] * step, *x.strides[axis + 1:], x.strides[axis])
        return self.module.lib.stride_tricks.as_strided(x, shape, strides)

    def add_windows(self, g: Any, shape: tuple, axis: int, step: int) -> Any:
        """zeros(shape) with windows added where `windows` reads them; its gradient."""
        count, size = g.shape[axis], g.shape[-1]
        out = self.zeros(shape, accumulation_dtype(g.dtype))
        lead = (slice(None),) * axis
        if size <= count:
            for tap in range(size):
                out[lead + (slice(tap, tap + step * (count - 1) + 1, step),)] += g[..., tap]
        else:
            for i in range(count):
                window = g[lead + (i,)]
                out[lead + (slice(i * step, i * step + size),)] += self.module.moveaxis(window, -1, axis)
        return out.astype(g.dtype, copy=False)
