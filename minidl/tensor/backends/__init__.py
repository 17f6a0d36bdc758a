"""The backends of the devices. That of "cuda" is made, and CuPy imported, when the device is first asked for."""

from ..backend import register
from . import cpu, cupy

register("cpu", cpu.make)
register("cuda", cupy.make)
