"""L-BFGS: a quasi-Newton method that keeps the last changes of position and gradient, with or without a line search."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..autograd.mode import enable_grad, no_grad
from ..tensor import dtypes
from ..tensor.convert import to_array
from ..tensor.ops.comparison import where
from ..tensor.ops.joining import cat
from ..tensor.tensor import Tensor, make_tensor
from .flat import MASTER
from .line_search import Point, strong_wolfe
from .optimizer import Optimizer, check_options

VECTORS = ("d", "prev_flat_grad", MASTER)
HISTORIES = ("old_dirs", "old_stps")


class LBFGS(Optimizer):
    """Several steps along -H g in one call of `step(closure)`, where H is built from the last changes of the gradient g.

    It is for losses without noise. There is one group; its state lies with its first parameter. Half parameters are
    evaluated in half, while positions, directions and sums are float32.

    Args:
        lr: the length of a step, of which a line search starts.
        max_iter: steps in one call of `step`.
        max_eval: calls of closure in one call of `step`, after which no step begins; None is max_iter * 5 // 4.
        tolerance_grad: stop where no element of the gradient is larger.
        tolerance_change: stop where no element of the position, or the loss, has changed more.
        history_size: changes of position and gradient that are kept; 2 * history_size times the parameters' memory.
        line_search_fn: "strong_wolfe", or None for steps of fixed length.

    Raises:
        ValueError: for options out of range, or several groups.

    Source: Nocedal and Wright 2006, algorithms 7.4, 3.5 and 3.6, with the rules for stopping of PyTorch.
    """

    needs_closure = True  # a loss scaler refuses it

    def __init__(self, params: Any, lr: float = 1, max_iter: int = 20, max_eval: int | None = None,
                 tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
                 line_search_fn: str | None = None, *, master_weights: bool = True):
        check_options("LBFGS", [("lr", lr)])
        if line_search_fn not in (None, "strong_wolfe"):
            raise ValueError(f"LBFGS expected line_search_fn None or 'strong_wolfe', got {line_search_fn!r}")
        if history_size < 1:
            raise ValueError(f"LBFGS expected history_size >= 1, got {history_size}; for plain gradient descent use SGD")
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        super().__init__(params, dict(lr=lr, max_iter=max_iter, max_eval=max_eval, tolerance_grad=tolerance_grad,
                                      tolerance_change=tolerance_change, history_size=history_size,
                                      line_search_fn=line_search_fn), master_weights=master_weights)

    def add_param_group(self, param_group: dict) -> None:
        if self.param_groups:
            raise ValueError("LBFGS expected one group of parameters, got a second; its steps need one set of options")
        super().add_param_group(param_group)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Minimize for at most max_iter steps.

        Args:
            closure: computes the gradients anew and returns the loss; it is called several times.

        Returns:
            the loss before the first step.

        Raises:
            TypeError: without closure.
        """
        if closure is None:
            raise TypeError("LBFGS.step expected a closure that computes the gradients anew and returns the loss, got None")
        self._call_hooks("step_pre", (closure,))
        with no_grad():
            first_loss = self._minimize(closure, self.param_groups[0], self.state[self.param_groups[0]["params"][0]])
        self.taken_steps += 1
        self._call_hooks("step", (closure,))
        return first_loss

    def _minimize(self, closure: Callable[[], Any], group: dict, state: dict) -> Any:
        x = self._position(state)
        first_loss, g = self._evaluate(closure)
        loss, evaluations = float(first_loss), 1
        state["n_iter"] = state.get("n_iter", 0)
        state["func_evals"] = state.get("func_evals", 0) + 1
        if _largest(g) <= group["tolerance_grad"]:
            return first_loss
        for i in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            d = self._direction(state, g, group["history_size"])
            t = group["lr"] if state["n_iter"] > 1 else group["lr"] * min(1.0, 1 / float(g.abs().sum()))
            previous_loss, slope = loss, float(g.dot(d))
            state.update(d=d, t=t, prev_flat_grad=g, prev_loss=loss)
            if slope > -group["tolerance_change"]:
                break
            calls = 0
            if group["line_search_fn"] is not None:
                found, calls = strong_wolfe(self._line(closure, x, d), Point(0.0, loss, g, slope), t, _largest(d),
                                            group["max_eval"] - evaluations)
                state["t"], loss, g = found.t, found.loss, found.gradient
            x = x + d * state["t"]
            self._move(x)
            if group["line_search_fn"] is None and i < group["max_iter"]:
                value, g = self._evaluate(closure)
                loss, calls = float(value), 1
            evaluations += calls
            state["func_evals"] += calls
            if (evaluations >= group["max_eval"] or _largest(g) <= group["tolerance_grad"]
                    or _largest(d) * abs(state["t"]) <= group["tolerance_change"]
                    or abs(loss - previous_loss) < group["tolerance_change"]):
                break
        if self.master_weights and any(p.dtype in dtypes.HALF for p in group["params"]):
            state[MASTER] = x
        return first_loss

    def _direction(self, state: dict, g: Tensor, history_size: int) -> Tensor:
        """-H g, after H has been told of the last step."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
            return -g
        y, s = g - state["prev_flat_grad"], state["d"] * state["t"]
        curvature = float(y.dot(s))
        if curvature > 1e-10:
            for name, value in (("old_dirs", y), ("old_stps", s), ("ro", 1 / curvature)):
                state[name] = [*state[name], value][-history_size:]
            state["H_diag"] = curvature / float(y.dot(y))
        d, shares = -g, []
        history = list(zip(state["old_dirs"], state["old_stps"], state["ro"]))
        for y, s, ro in reversed(history):
            shares.append(s.dot(d) * ro)
            d = d - y * shares[-1]
        d = d * state["H_diag"]
        for (y, s, ro), share in zip(history, reversed(shares)):
            d = d + s * (share - y.dot(d) * ro)
        return d

    # One long vector for all parameters

    def _wide(self) -> Any:
        doubles = any(p.dtype == dtypes.float64 for p in self.param_groups[0]["params"])
        return dtypes.float64 if doubles else dtypes.float32

    def _flat(self, tensors: list[Tensor]) -> Tensor:
        return cat([tensor.detach().to(dtype=self._wide()).reshape(-1) for tensor in tensors])

    def _position(self, state: dict) -> Tensor:
        """The parameters, of halves the masters, where nobody has edited the half since."""
        params = self.param_groups[0]["params"]
        x = self._flat(params)
        if MASTER not in state:
            return x
        rounded = self._flat([piece.to(dtype=p.dtype) for p, piece in zip(params, self._pieces(state[MASTER]))])
        return where(rounded == x, state[MASTER], x)

    def _pieces(self, x: Tensor) -> list[Tensor]:
        params = self.param_groups[0]["params"]
        return [piece.reshape(p.shape) for p, piece in zip(params, x.split([p.numel() for p in params]))]

    def _move(self, x: Tensor) -> None:
        for p, piece in zip(self.param_groups[0]["params"], self._pieces(x)):
            p.copy_(piece)

    def _evaluate(self, closure: Callable[[], Any]) -> tuple[Any, Tensor]:
        with enable_grad():
            loss = closure()
        params = self.param_groups[0]["params"]
        return loss, self._flat([p.new_zeros(p.shape) if p.grad is None else p.grad for p in params])

    def _line(self, closure: Callable[[], Any], x: Tensor, d: Tensor) -> Callable[[float], Point]:
        def at(t: float) -> Point:
            self._move(x + d * t)
            loss, g = self._evaluate(closure)
            return Point(t, float(loss), g, float(g.dot(d)))
        return at

    def _loaded(self, who: str, p: Tensor, number: Any, entry: dict, arrays: set) -> dict:
        size = sum(q.numel() for q in self.param_groups[0]["params"])

        def vector(name: str, value: Any) -> Tensor:
            tensor = make_tensor(to_array(value), None)
            if tensor.shape != (size,):
                raise ValueError(f"{who} expected {name} of shape ({size},), got {tensor.shape}")
            return tensor.to(p.device, dtype=self._wide(), copy=True)

        made: dict = {}
        for name, value in entry.items():
            if name in VECTORS and value is not None:
                made[name] = vector(name, value)
            elif name in HISTORIES and value is not None:
                made[name] = [vector(name, one) for one in value]
            elif name == "ro" and value is not None:
                made[name] = [float(one) for one in value]
            elif name in ("n_iter", "func_evals"):
                made[name] = int(value)
            elif name in ("t", "H_diag", "prev_loss") and value is not None:
                made[name] = float(value)
        return made


def _largest(x: Tensor) -> float:
    return float(x.abs().max()) if math.prod(x.shape) else 0.0
