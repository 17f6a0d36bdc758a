"""First floor: the Tensor, its ops, dtypes, devices, backends and random numbers."""

import warnings

from . import backends, methods, tensor_backend  # noqa: F401
from .backend import backend_for
from .device import CPU

backend_for(CPU)

# Infinities and NaN are values, as in PyTorch: NumPy need not warn where minidl's own code computes them.
warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"minidl\.")
