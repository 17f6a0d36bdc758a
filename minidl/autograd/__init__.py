"""Ground floor: the graph, backward, and the tools around them."""

from . import functional
from .backward import backward, grad
from .function import Function, once_differentiable
from .gradcheck import GradcheckError, gradcheck, gradgradcheck
from .mode import (
    detect_anomaly,
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_detect_anomaly,
    set_grad_enabled,
)

__all__ = ["Function", "GradcheckError", "backward", "detect_anomaly", "enable_grad", "functional", "grad", "gradcheck",
           "gradgradcheck", "inference_mode", "is_grad_enabled", "no_grad", "once_differentiable", "set_detect_anomaly",
           "set_grad_enabled"]
