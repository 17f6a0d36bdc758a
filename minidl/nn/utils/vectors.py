"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from ...autograd.mode import no_grad
from ...tensor.ops.joining import cat
from ...tensor.ops.splitting import split
from ...tensor.tensor import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of several parameters, one behind the other; gradients flow back to them.

    Raises:
        TypeError: for parameters on different devices.
    """
    parameters = list(parameters)
    _check_device("parameters_to_vector", parameters)
    return cat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Copy the elements of a vector into the parameters, which keep their memory and their dtype.

    Raises:
        TypeError: if vec is no tensor, or for parameters on different devices.
        RuntimeError: if it is no vector, or has not as many elements as the parameters together; none is changed then.
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"vector_to_parameters expected a tensor as vec, got {type(vec).__name__}")
    parameters = list(parameters)
    _check_device("vector_to_parameters", parameters)
    sizes = [parameter.numel() for parameter in parameters]
    if vec.shape != (sum(sizes),):
        raise RuntimeError(f"vector_to_parameters expected a vector of {sum(sizes)} elements, as many as the parameters have, "
                           f"got shape {vec.shape}")
    with no_grad():
        for parameter, piece in zip(parameters, split(vec, sizes)):
            parameter.copy_(piece.reshape(parameter.shape))


def _check_device(name: str, parameters: list[Tensor]) -> None:
    devices = list(dict.fromkeys(str(parameter.device) for parameter in parameters))
    if len(devices) > 1:
        raise TypeError(f"{name} expected parameters on one device, got {' and '.join(devices)}; move some with .to()")
