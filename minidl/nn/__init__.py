"""Second floor: what networks are made of. `minidl.nn.functional` holds the functions of layers."""

from . import functional

__all__ = ["functional"]
