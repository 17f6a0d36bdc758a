"""Binds functions to Tensor: operators, methods, in-place methods."""

from __future__ import annotations

from . import conversion, copying, creation, graph_methods, inspection, printing
from .checked import checked
from .inplace import in_place, in_place_arithmetic
from .operators import OPERATORS
from .ops import MODULES, arithmetic
from .tensor import Tensor

for module in (*MODULES, creation):
    for function in module.METHODS:
        setattr(Tensor, function.__name__, function if hasattr(function, "op") else checked(function))
    for function in getattr(module, "IN_PLACE", ()):
        setattr(Tensor, function.__name__ + "_", in_place(function))

for function, ufunc in ((arithmetic.add, "add"), (arithmetic.sub, "subtract"), (arithmetic.mul, "multiply")):
    setattr(Tensor, function.__name__ + "_", in_place_arithmetic(function, ufunc))

for function in (graph_methods.backward, graph_methods.register_hook, graph_methods.retain_grad,
                 graph_methods.register_post_accumulate_grad_hook, graph_methods.requires_grad_):
    setattr(Tensor, function.__name__, function)
for name, getter in (("grad_fn", graph_methods.grad_fn), ("retains_grad", graph_methods.retains_grad),
                     ("is_leaf", graph_methods.is_leaf)):
    setattr(Tensor, name, property(getter))
setattr(Tensor, "requires_grad", property(graph_methods.requires_grad, graph_methods.set_requires_grad))  # noqa: B010
setattr(Tensor, "grad_buffer", property(graph_methods.grad_buffer, graph_methods.set_grad_buffer))  # noqa: B010

for name, function in OPERATORS.items():
    setattr(Tensor, name, function)

for methods in (conversion.METHODS, copying.METHODS, inspection.METHODS, printing.METHODS):
    for name, function in methods.items():
        setattr(Tensor, name, function)
for name, getter in inspection.PROPERTIES.items():
    setattr(Tensor, name, property(getter))
