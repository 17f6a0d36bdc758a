"""The CPU's block-wise error function is the reference's, bit by bit."""

import numpy as np
import pytest

from minidl.tensor.backend import Backend, backend_of
from minidl.tensor.backends import cpu


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape, order", [((), "C"), ((0, 3), "C"), ((cpu._BLOCK,), "C"), ((3, cpu._BLOCK // 2 + 1), "C"),
                                          ((3, cpu._BLOCK), "F")])
def test_erf_in_blocks(dtype, shape, order):
    x = np.asarray(np.random.default_rng(0).standard_normal(shape) * 3, dtype, order=order)
    xp = backend_of(x)
    np.testing.assert_array_equal(xp.erf(x), Backend.erf(xp, x))
    assert xp.erf(x).shape == shape and xp.erf(x).dtype == dtype
