"""Element-wise functions that NumPy lacks or is slow at: choices, the logistic and the error function, whole powers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..dtypes import float32
from .reduction import narrowed

_FEW = 2048  # elements, from which on select is faster than where
_BITS = {1: "i1", 2: "i2", 4: "i4", 8: "i8"}

_SQRT_HALF = 0.7071067811865476
_ONE_OVER_SQRT_PI = 0.5641895835477563

# erf(x) = x P(x^2) / Q(x^2) on [-4, 4] to float32's precision, highest powers first. Source: Eigen 3.3's and XLA's
# erf for float.
_ERF_P = (-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
          -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02)
_ERF_Q = (-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03,
          -1.42647390514189e-02)

# W. J. Cody 1969, Rational Chebyshev approximations for the error function, Math. Comp. 23; as in SPECFUN's CALERF.
# erf = x A(x^2) / B(x^2) up to 0.46875, erfc = exp(-x^2) C(x) / D(x) up to 4, beyond that from P(1/x^2) / Q(1/x^2).
_A = (1.85777706184603153e-1, 3.16112374387056560e0, 1.13864154151050156e2, 3.77485237685302021e2, 3.20937758913846947e3)
_B = (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3)
_C = (2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0, 6.61191906371416295e1, 2.98635138197400131e2,
      8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3, 1.23033935479799725e3)
_D = (1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
      3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3)
_P = (1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1,
      1.60837851487422766e-2, 6.58749161529837803e-4)
_Q = (1.0, 2.56852019228982242e0, 1.87295284992346725e0, 5.27905102951428412e-1, 6.05183413124413191e-2,
      2.33520497626869185e-3)

# M. J. Wichura 1988, The percentage points of the normal distribution, Applied Statistics 37, algorithm AS 241 (PPND16).
_CENTRAL = ((2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
             1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0),
            (5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
             5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0))
_TAIL = ((7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
          3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0),
         (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
          6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0))
_FAR_TAIL = ((2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
              2.96560571828504891230e-1, 1.78482653991729133580e0, 5.46378491116411436990e0, 6.65790464350110377720e0),
             (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
              7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1,
              5.99832206555887937690e-1, 1.0))


def polynomial(x: Any, coefficients: tuple) -> Any:
    """The polynomial with these coefficients, highest power first, by Horner's rule."""
    y = x * coefficients[0]
    for c in coefficients[1:-1]:
        y += c
        y *= x
    y += coefficients[-1]
    return y


class SpecialKernels:
    """Element-wise special functions of float32 and float64 arrays with axes or without."""

    abs: Any
    asarray: Any
    copysign: Any
    device_type: str
    array_type: Any
    exp: Any
    log: Any
    log1p: Any
    maximum: Any
    minimum: Any
    negative: Any
    sqrt: Any
    trunc: Any
    widen: Any
    where: Any

    def select(self, condition: Any, a: Any, b: Any) -> Any:
        """where(condition, a, b) for a bool condition.

        NumPy's `where` branches at each element, 15 ns where the condition is irregular; masking the bits does not.
        """
        number, array = (a, b) if isinstance(a, (int, float)) else (b, a)
        if not isinstance(array, self.array_type):
            return self.where(condition, a, b)
        dtype = array.dtype
        zero = False
        if isinstance(number, (int, float)) and (dtype.kind in "fV" or (dtype.kind in "iu" and number.__class__ is int)):
            zero = number.__class__ is int and number == 0
            number = self.asarray(number, dtype)  # NumPy would widen bfloat16 for a number
            a, b = (number, b) if array is b else (a, number)
        masks = isinstance(condition, self.array_type) and condition.dtype.kind == "b" and condition.size >= _FEW
        if not masks or not isinstance(number, self.array_type) or number.dtype != dtype or self.device_type != "cpu":
            return self.where(condition, a, b)
        bits = _BITS[dtype.itemsize]
        mask = condition.astype(bits)
        self.negative(mask, mask)
        if zero:
            return (array.view(bits) & (mask if array is a else ~mask)).view(dtype)
        a, b = a.view(bits), b.view(bits)
        return (((a ^ b) & mask) ^ b).view(dtype)

    def by_blocks(self, formula: Callable, *arrays: Any) -> Any:
        """formula(backend, *arrays) of arrays of one shape, which it combines element by element; of halves it is computed in
        float32. A CPU does so a block at a time."""
        return narrowed(formula(self, *map(self.widen, arrays)), arrays[0].dtype)

    def relu(self, x: Any) -> Any:
        """max(x, 0)."""
        return self.maximum(x, 0)

    def relu_gradient(self, g: Any, y: Any) -> Any:
        """g where relu gave y > 0, else 0."""
        return g * (y > 0)

    def softplus(self, x: Any) -> Any:
        """log(1 + exp(x)), which neither overflows nor loses small values; many times faster than logaddexp(x, 0)."""
        return self.maximum(x, 0) + self.log1p(self.exp(-self.abs(x)))

    def sigmoid(self, x: Any) -> Any:
        """1 / (1 + exp(-x)), which loses nothing at either end."""
        return 1 / (1 + self.exp(-x))

    def power_number(self, x: Any, exponent: Any) -> Any:
        """x ** exponent for a Python number; a cube is two products, many times faster than the general power."""
        if exponent == 3:
            return x * x * x
        return x ** exponent

    def erf(self, x: Any) -> Any:
        """The error function; off by less than 1e-15 in float64 and 5e-7 in float32."""
        if x.dtype == float32:
            x = self.asarray(self.maximum(self.minimum(x, 4), -4))
            t = x * x
            return x * polynomial(t, _ERF_P) / polynomial(t, _ERF_Q)
        a = self.asarray(self.abs(x))
        return self.select(a <= 0.46875, self._erf_near_zero(x), self.copysign(1 - self._erfc_of_positive(a), x))

    def erfc(self, x: Any) -> Any:
        """1 - erf(x), with full relative precision also where it is small."""
        a = self.asarray(self.abs(x))
        far = self._erfc_of_positive(a)
        return self.select(a <= 0.46875, 1 - self._erf_near_zero(x), self.select(x < 0, 2 - far, far))

    def _erf_near_zero(self, x: Any) -> Any:
        x = self.maximum(self.minimum(x, 0.5), -0.5)
        t = self.asarray(x * x)
        return x * (polynomial(t, _A) / polynomial(t, _B))

    def _erfc_of_positive(self, a: Any) -> Any:
        """erfc for a > 0.46875."""
        a = self.asarray(self.minimum(a, 30))
        middle = self.asarray(self.minimum(a, 4))
        far = self.asarray(self.maximum(a, 4))
        t = 1 / (far * far)
        tail = (_ONE_OVER_SQRT_PI - t * (polynomial(t, _P) / polynomial(t, _Q))) / far
        coarse = self.trunc(a * 16) / 16  # its square is exact: rounding a * a would cost the relative precision of exp
        decay = self.exp(-coarse * coarse) * self.exp((coarse - a) * (a + coarse))
        return decay * self.select(a <= 4, polynomial(middle, _C) / polynomial(middle, _D), tail)

    def erfinv(self, y: Any) -> Any:
        """The x with erf(x) = y; infinite at -1 and 1, nan outside."""
        a = self.asarray(self.abs(y))
        r = self.asarray(self.maximum(0.180625 - a * a * 0.25, 0))
        central = a * 0.5 * polynomial(r, _CENTRAL[0]) / polynomial(r, _CENTRAL[1])
        depth = self.sqrt(-self.log(0.5 - a * 0.5))
        near = self.asarray(self.maximum(self.minimum(depth, 5), 1.6) - 1.6)
        far = self.asarray(self.maximum(self.minimum(depth, 30), 5) - 5)
        tail = self.select(depth <= 5, polynomial(near, _TAIL[0]) / polynomial(near, _TAIL[1]),
                          polynomial(far, _FAR_TAIL[0]) / polynomial(far, _FAR_TAIL[1]))
        x = self.select(a <= 0.85, central, self.select(a < 1, tail, depth))
        return self.copysign(x * _SQRT_HALF, y)
