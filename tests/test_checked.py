"""Arguments that should have been tensors raise a TypeError that names them."""

import pytest

import minidl
import minidl.nn.functional as F
from minidl.tensor.checked import checked

A = minidl.ones(2)


@pytest.mark.parametrize("call, message", [
    (lambda: minidl.mean([1.0, 2.0]), "mean expected a tensor as input, got list"),
    (lambda: minidl.mean(input=1.5), "mean expected a tensor as input, got float"),
    (lambda: minidl.mean(None), "mean expected a tensor as input, got None"),
    (lambda: minidl.matmul(A, 1), "matmul expected a tensor as other, got int"),
    (lambda: F.cross_entropy("a", A), "cross_entropy expected a tensor as input, got str"),
    (lambda: minidl.isclose(A, 2), "isclose expected a tensor as other, got int"),
    (lambda: minidl.heaviside(A, 1), "heaviside expected a tensor as .*, got int"),
    (lambda: minidl.block_diag(A, 1), "block_diag expected a tensor as tensors, got int"),
    (lambda: minidl.mean([1.0], out=A), "mean expected a tensor as input, got list"),
])
def test_no_tensor(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_other_attribute_errors_pass():
    @checked
    def function(input):
        return input.nothing

    with pytest.raises(AttributeError, match="nothing"):
        function(A)
    with pytest.raises(TypeError, match="expected a tensor as input"):
        function(3)


@pytest.mark.parametrize("call", [lambda t: t.isclose(2), lambda t: t.gather(0, [1]), lambda t: t.reshape_as(3)])
def test_methods_name_what_is_no_tensor(call):
    with pytest.raises(TypeError, match="expected"):
        call(minidl.ones(2))
