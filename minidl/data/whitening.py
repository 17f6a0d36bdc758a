"""Whitening: features rotated (PCA) and scaled so that they are uncorrelated and of variance 1."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..tensor import dtypes
from .transforms import array_of, kind_of

__all__ = ["PCAWhitening", "ZCAWhitening"]


class PCAWhitening:
    """Projects samples on the principal components of a training set, each scaled to variance 1.

    Call fit once, then transform (or the object itself) on one sample (...) or on a batch (N, ...).

    Args:
        n_components: number of components kept, those of the largest variance; by default all.
        epsilon: added to each variance before its root is divided by.

    Attributes:
        mean: (features,), variances: (components,) falling, components: (components, features), all float64.
    """

    def __init__(self, n_components: int | None = None, *, epsilon: float = 1e-5):
        if n_components is not None and n_components < 1:
            raise ValueError(f"{type(self).__name__} expected n_components of at least 1, got {n_components}")
        if not epsilon >= 0:
            raise ValueError(f"{type(self).__name__} expected an epsilon that is not negative, got {epsilon}")
        self.n_components, self.epsilon = n_components, epsilon
        self.shape: tuple[int, ...] | None = None

    def fit(self, x: Any) -> PCAWhitening:
        """Learns mean and components of a training set (N, ...), N at least 2; returns the object itself."""
        array = array_of(type(self).__name__, x)
        if array.ndim < 2 or len(array) < 2:
            raise ValueError(f"{type(self).__name__}.fit expected at least 2 samples (N, ...), got shape {array.shape}")
        flat = array.reshape(len(array), -1).astype(np.float64)
        if not np.isfinite(flat).all():
            raise ValueError(f"{type(self).__name__}.fit expected finite numbers, got NaN or infinity")
        kept = self.n_components or flat.shape[1]
        if kept > flat.shape[1]:
            raise ValueError(f"{type(self).__name__} expected at most {flat.shape[1]} components, the number of features, got "
                             f"n_components={kept}")
        self.mean = flat.mean(0)
        flat -= self.mean
        variances, vectors = np.linalg.eigh(flat.T @ flat / (len(flat) - 1))
        self.variances = np.maximum(variances[::-1][:kept], 0)
        components = vectors.T[::-1][:kept]
        largest = np.abs(components).argmax(1)[:, None]
        self.components = components * np.sign(np.take_along_axis(components, largest, 1))
        self.shape = array.shape[1:]
        return self

    def transform(self, x: Any) -> Any:
        """The whitened sample or batch, an array or tensor as x is; float32 where x is of integers.

        Shapes: (...) to (components,), (N, ...) to (N, components).
        """
        whitened, batch = self._whitened(x)
        return self._result(x, whitened, (*batch, len(self.components)))

    def inverse_transform(self, x: Any) -> Any:
        """What was whitened, up to the components that were dropped.

        Shapes: (components,) to (...), (N, components) to (N, ...).
        """
        array = self._checked(x, (len(self.components),) if self.shape is not None else ())
        restored = (array * self._scale()) @ self.components + self.mean
        return self._result(x, restored, (*array.shape[:-1], *self.shape))  # type: ignore[misc]

    def __call__(self, x: Any) -> Any:
        return self.transform(x)

    def _scale(self) -> np.ndarray:
        scale = np.sqrt(self.variances + self.epsilon)
        return np.where(scale > 0, scale, 1.0)  # a constant feature has no variance to divide by

    def _whitened(self, x: Any) -> tuple[np.ndarray, tuple[int, ...]]:
        array = self._checked(x, self.shape or ())
        batch = array.shape[:array.ndim - len(self.shape or ())]
        flat = array.reshape(*batch, math.prod(self.shape or ())) - self.mean
        return flat @ self.components.T / self._scale(), batch

    def _checked(self, x: Any, shape: tuple[int, ...]) -> np.ndarray:
        name = type(self).__name__
        array = array_of(name, x)
        if self.shape is None:
            raise RuntimeError(f"{name} has no components yet; call fit(training set) first")
        if array.shape != shape and array.shape[1:] != shape:
            raise ValueError(f"{name} expected a sample of shape {shape} or a batch of them, got shape {array.shape}")
        return array.astype(np.float64)

    def _result(self, x: Any, values: np.ndarray, shape: tuple[int, ...]) -> Any:
        dtype = x.dtype if x.dtype in dtypes.FLOATING else dtypes.float32
        return kind_of(x, values.reshape(shape).astype(dtype))


class ZCAWhitening(PCAWhitening):
    """Whitening that changes samples least: the PCA-whitened sample is rotated back, so that an image stays an image.

    Args:
        n_components: number of components kept, those of the largest variance; by default all.
        epsilon: added to each variance before its root is divided by.

    Source: Krizhevsky 2009, Learning multiple layers of features from tiny images, appendix A.
    """

    def transform(self, x: Any) -> Any:
        """The whitened sample or batch, in its shape; float32 where x is of integers.

        Shapes: (...) or (N, ...), kept.
        """
        whitened, batch = self._whitened(x)
        return self._result(x, whitened @ self.components, (*batch, *self.shape))  # type: ignore[misc]

    def inverse_transform(self, x: Any) -> Any:
        """What was whitened, up to the components that were dropped.

        Shapes: (...) or (N, ...), kept.
        """
        array = self._checked(x, self.shape or ())
        flat = array.reshape(*array.shape[:array.ndim - len(self.shape or ())], len(self.mean))
        return self._result(x, flat @ self.components.T * self._scale() @ self.components + self.mean, array.shape)
