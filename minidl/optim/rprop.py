"""Rprop: each element has a step size of its own, and only the signs of the gradient count."""

from __future__ import annotations

from typing import Any

from .optimizer import Optimizer, check_options


class Rprop(Optimizer):
    """Steps against the gradient's sign, of sizes that grow while the sign stays and shrink where it has changed.

    Where it has changed there is no step, and the next one keeps its size.

    Args:
        lr: the first step size.
        etas: factors by which a step size shrinks and grows.
        step_sizes: the smallest and the largest step size.
        foreach: accepted for PyTorch's sake; updates are always made over flat arrays.
        maximize: go up instead of down.

    Raises:
        ValueError: for options out of range.

    Source: Riedmiller and Braun 1993, in the form without going back (iRprop-: Igel and Huesken 2000).
    """

    def __init__(self, params: Any, lr: float = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
                 step_sizes: tuple[float, float] = (1e-6, 50), *, foreach: bool | None = None, maximize: bool = False,
                 master_weights: bool = True):
        check_options("Rprop", [("lr", lr)])
        if not 0 < etas[0] < 1 < etas[1]:
            raise ValueError(f"Rprop expected etas that shrink and grow, 0 < etas[0] < 1 < etas[1], got {etas}")
        if not 0 <= step_sizes[0] <= step_sizes[1]:
            raise ValueError(f"Rprop expected step_sizes (smallest, largest), got {step_sizes}")
        super().__init__(params, dict(lr=lr, etas=etas, step_sizes=step_sizes, maximize=maximize),
                         master_weights=master_weights)

    def initial_state(self, group: dict) -> dict[str, float]:
        return {"prev": 0.0, "step_size": 0.0}

    def begin(self, group: dict, numbers: dict) -> bool:
        """Is this the first step? Its size is the lr of now, which a schedule may have changed since the constructor."""
        numbers["step"] = numbers.get("step", 0) + 1
        return numbers["step"] == 1

    def update(self, xp: Any, group: dict, now: bool, p: Any, g: Any, state: dict[str, Any]) -> None:
        previous, size = state["prev"], state["step_size"]
        shrink, grow = group["etas"]
        if now:
            size[...] = group["lr"]
        agreement = xp.sign(g) * xp.sign(previous)  # the product of the gradients could underflow
        adapted = xp.where(agreement > 0, size * grow, xp.where(agreement < 0, size * shrink, size))
        xp.clip(adapted, *group["step_sizes"], out=size)
        previous[...] = xp.where(agreement < 0, 0, g)
        p -= xp.sign(previous) * size
