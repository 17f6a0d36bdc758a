"""Circular and hyperbolic functions and their inverses, element-wise; integers become floating."""

from __future__ import annotations

import math

from ...autograd.op import Cast, Promote
from ..apply import op
from .binary import binary
from .pointwise import real

__all__ = ["acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "deg2rad", "hypot", "rad2deg", "sin",
           "sinc", "sinh", "tan", "tanh"]


@real
def sin(xp, input):
    """Sine of each element, in radians."""
    return xp.sin(input), lambda g: g * xp.cos(input)


@real
def cos(xp, input):
    """Cosine of each element, in radians."""
    return xp.cos(input), lambda g: -g * xp.sin(input)


@op(Cast.FULL)
def tan(xp, input):
    """Tangent of each element, in radians."""
    y = xp.tan(input)
    return y, lambda g: g * (y * y + 1)


@op(Cast.FULL)
def asin(xp, input):
    """The angle in [-pi/2, pi/2] of which each element is the sine."""
    return xp.arcsin(input), lambda g: g / xp.sqrt(1 - input * input)


@op(Cast.FULL)
def acos(xp, input):
    """The angle in [0, pi] of which each element is the cosine."""
    return xp.arccos(input), lambda g: -g / xp.sqrt(1 - input * input)


@real
def atan(xp, input):
    """The angle in [-pi/2, pi/2] of which each element is the tangent."""
    return xp.arctan(input), lambda g: g / (input * input + 1)


@binary(promote=Promote.FLOAT, wide=True)
def atan2(xp, input, other):
    """The angle in [-pi, pi] of the point with abscissa `other` and ordinate `input`."""
    def square():
        return input * input + other * other

    def per_square():
        return 1 / xp.select(square() == 0, 1, square())

    return xp.arctan2(input, other), (lambda g: g * other * per_square(), lambda g: -g * input * per_square())


@op(Cast.FULL)
def sinh(xp, input):
    """Hyperbolic sine of each element."""
    return xp.sinh(input), lambda g: g * xp.cosh(input)


@op(Cast.FULL)
def cosh(xp, input):
    """Hyperbolic cosine of each element."""
    return xp.cosh(input), lambda g: g * xp.sinh(input)


@real
def tanh(xp, input):
    """Hyperbolic tangent of each element."""
    y = xp.tanh(input)
    return y, lambda g: g * (1 - y * y)


@real
def asinh(xp, input):
    """Inverse of the hyperbolic sine."""
    return xp.arcsinh(input), lambda g: g / xp.sqrt(input * input + 1)


@real
def acosh(xp, input):
    """Inverse of the hyperbolic cosine."""
    return xp.arccosh(input), lambda g: g / xp.sqrt(input * input - 1)


@real
def atanh(xp, input):
    """Inverse of the hyperbolic tangent."""
    return xp.arctanh(input), lambda g: g / (1 - input * input)


@real
def sinc(xp, input):
    """sin(pi x) / (pi x), and 1 at 0."""
    def gradient(g):
        angle = input * math.pi
        zero = input == 0
        slope = (angle * xp.cos(angle) - xp.sin(angle)) / xp.select(zero, 1, angle * input)
        return g * xp.select(zero, 0, slope)

    return xp.sinc(input), gradient


@binary(promote=Promote.FLOAT, wide=True)
def hypot(xp, input, other):
    """sqrt(input^2 + other^2), element-wise, without overflow."""
    y = xp.hypot(input, other)
    return y, (lambda g: g * (input / y), lambda g: g * (other / y))


@real
def deg2rad(xp, input):
    """Degrees as radians."""
    return input * (math.pi / 180), lambda g: g * (math.pi / 180)


@real
def rad2deg(xp, input):
    """Radians as degrees."""
    return input * (180 / math.pi), lambda g: g * (180 / math.pi)


METHODS = (acos, acosh, asin, asinh, atan, atan2, atanh, cos, cosh, deg2rad, hypot, rad2deg, sin, sinc, sinh, tan, tanh)
IN_PLACE = METHODS
ON_TENSORS = {"arccos": acos, "arccosh": acosh, "arcsin": asin, "arcsinh": asinh, "arctan": atan, "arctan2": atan2,
              "arctanh": atanh, "cos": cos, "cosh": cosh, "hypot": hypot, "sin": sin, "sinc": sinc, "sinh": sinh,
              "tan": tan, "tanh": tanh}
