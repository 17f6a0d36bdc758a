"""initialize: a float32 model and its optimizer made ready for mixed precision, by one of four presets."""

from __future__ import annotations

import logging
import weakref
from typing import Any, NamedTuple

from ..autograd.mode import no_grad
from ..tensor import dtypes
from ..tensor.policy import Policy, map_tensors
from ..tensor.tensor import make_tensor
from .grad_scaler import GradScaler, StaticScaler
from .losses import Training, is_initialized
from .masters import keep_state_dict_float32

logger = logging.getLogger("minidl.amp")


class _Level(NamedTuple):
    casts_model: bool          # the parameters become half; otherwise ops are cast one by one, if at all
    casts_ops: bool
    keeps_norms: bool | None   # normalization layers stay float32
    masters: bool | None
    scale: float | str


LEVELS = {"O0": _Level(False, False, None, None, 1.0),
          "O1": _Level(False, True, None, None, "dynamic"),
          "O2": _Level(True, False, True, True, "dynamic"),
          "O3": _Level(True, False, False, False, 1.0)}

_models: weakref.WeakSet[Any] = weakref.WeakSet()  # those that have been through initialize


def initialize(model: Any, optimizer: Any = None, opt_level: str = "O1", loss_scale: float | str | None = None,
               keep_batchnorm_fp32: bool | str | None = None, master_weights: bool | None = None, num_losses: int = 1,
               cast_model_outputs: Any = None, verbosity: int = 0, *, dtype: Any = dtypes.float16, enabled: bool = True,
               min_loss_scale: float = 1.0, max_loss_scale: float = 2.0 ** 24) -> Any:
    """Make float32 models and their optimizers ready for mixed precision. They are changed in place, and returned.

    ====  =====================  ========================================  ===================  =======  ==========
    ..    model                  ops                                       normalization float32  masters  loss scale
    ====  =====================  ========================================  ===================  =======  ==========
    O0    float32                as they are                               -                      no       1
    O1    float32                autocast inside the model                 -                      no       dynamic
    O2    half                   as they are; inputs cast to half          yes                    yes      dynamic
    O3    half                   as they are; inputs cast to half          no                     no       1
    ====  =====================  ========================================  ===================  =======  ==========

    O0, O2 and O3 return float32 outputs, O1 what comes. Under O2 and O3 state dicts of the model are float32, from the
    masters where there are some; float32 ones are loaded into the masters exactly.

    Args:
        model: or a list of models.
        optimizer: or a list of optimizers; None for inference. Of any parameters of the models, made before this call.
        opt_level: "O0" to "O3"; the other options override it.
        loss_scale: "dynamic" or a number; 1 is no scaling.
        keep_batchnorm_fp32: O2, O3: leave normalization layers (`keeps_float32`) in float32.
        master_weights: O2, O3: the optimizers keep float32 values of half parameters.
        num_losses: how many scalers, for scale_loss(loss_id=).
        cast_model_outputs: the dtype of the models' outputs.
        verbosity: above 0 logs what has been chosen.
        dtype: float16, or bfloat16, under which losses are not scaled by default.
        enabled: False changes nothing, and scale_loss yields the loss as it is.
        min_loss_scale, max_loss_scale: bounds of a dynamic scale.

    Returns:
        model, or (model, optimizer), in the same structure.

    Raises:
        TypeError: for what are no models or optimizers.
        ValueError: for an unknown level or impossible options.
        RuntimeError: for a model that is not float32, or what has been through initialize before.

    Source: NVIDIA Apex.
    """
    models, optimizers = _checked("model", model), _checked("optimizer", optimizer)
    level = _overridden(opt_level, keep_batchnorm_fp32, master_weights)
    half = dtypes.as_dtype(dtype)
    if half not in dtypes.HALF:
        raise ValueError(f"initialize expected the dtype float16 or bfloat16, got {dtypes.dtype_name(half)}")
    if type(num_losses) is not int or num_losses < 1:
        raise ValueError(f"initialize expected num_losses as a positive integer, got {num_losses!r}")
    default = 1.0 if half != dtypes.float16 else level.scale
    scale = _checked_scale(default if loss_scale is None else loss_scale) if enabled else 1.0
    scalers = [_scaler(scale, min_loss_scale, max_loss_scale) for _ in range(num_losses)]
    if enabled:
        _refuse_what_is_not_float32(models)
        _prepare(models, optimizers, level, half, cast_model_outputs)
    Training(scalers, optimizers)
    _models.update(models)
    if verbosity:
        logger.info("initialize: %s, %s, loss scale %s, %s", opt_level, dtypes.dtype_name(half), scale, level)
    return model if optimizer is None else (model, optimizer)


def _checked(what: str, given: Any) -> list:
    """Models or optimizers as a list."""
    several = list(given) if isinstance(given, (list, tuple)) else [] if given is None and what == "optimizer" else [given]
    needs = ("named_modules", "register_forward_hook") if what == "model" else ("param_groups", "register_step_pre_hook")
    for one in several:
        if isinstance(one, type) or not all(hasattr(one, name) for name in needs):
            kind = "nn.Module" if what == "model" else "optim.Optimizer"
            raise TypeError(f"initialize expected as {what} an {kind} or a list of them, got "
                            f"{one.__name__ if isinstance(one, type) else type(one).__name__}")
        if one in _models if what == "model" else is_initialized(one):
            raise RuntimeError(f"initialize got the {type(one).__name__} a second time; pass each {what} through it once")
    return several


def _overridden(opt_level: str, keep_batchnorm_fp32: Any, master_weights: Any) -> _Level:
    if not isinstance(opt_level, str) or opt_level not in LEVELS:
        raise ValueError(f"initialize expected opt_level as one of {', '.join(LEVELS)} (the letter O and a digit), got "
                         f"{opt_level!r}")
    keeps = {"True": True, "False": False}.get(keep_batchnorm_fp32, keep_batchnorm_fp32)
    for name, value in (("keep_batchnorm_fp32", keeps), ("master_weights", master_weights)):
        if value is not None and not isinstance(value, bool):
            raise ValueError(f"initialize expected {name} as True, False or None, got {value!r}")
        if value is not None and opt_level == "O1":
            raise ValueError(f"initialize expected no {name} with O1, whose parameters all stay float32, got {value}")
    level = LEVELS[opt_level]
    return level._replace(keeps_norms=level.keeps_norms if keeps is None else keeps,
                          masters=level.masters if master_weights is None else master_weights)


def _checked_scale(loss_scale: Any) -> float | str:
    if loss_scale == "dynamic":
        return "dynamic"
    try:
        return float(loss_scale)
    except (TypeError, ValueError):
        raise ValueError(f'initialize expected loss_scale as "dynamic" or a number, got {loss_scale!r}') from None


def _scaler(scale: float | str, low: float, high: float) -> StaticScaler:
    if scale == "dynamic":
        return GradScaler(init_scale=min(max(65536.0, low), high), min_scale=low, max_scale=high)
    return StaticScaler(float(scale), enabled=scale != 1)


def _refuse_what_is_not_float32(models: list) -> None:
    for model in models:
        for name, p in model.named_parameters():
            if hasattr(p, "materialize"):
                raise RuntimeError(f"initialize expected parameters with shapes, got the lazy {name}; run the model once first")
            if p.is_floating_point() and p.dtype != dtypes.float32:
                raise RuntimeError(f"initialize expected a float32 model, got {name} in {dtypes.dtype_name(p.dtype)}; it casts "
                                   f"the model itself, so pass model.float()")


def _prepare(models: list, optimizers: list, level: _Level, half: Any, outputs: Any) -> None:
    for model in models:
        if level.casts_ops:
            model.policy = Policy(f"mixed_{dtypes.dtype_name(half)}")
        else:
            model.register_forward_pre_hook(_CastInputs(half if level.casts_model else dtypes.float32), with_kwargs=True)
        if outputs is not None or not level.casts_ops:
            model.register_forward_hook(_CastOutputs(dtypes.float32 if outputs is None else dtypes.as_dtype(outputs)))
    if level.casts_model:
        for optimizer in optimizers:
            optimizer.master_weights = level.masters
        before = [(o, p, p.array) for o in optimizers for group in o.param_groups for p in group["params"]]
        with no_grad():
            for model in models:
                _cast(model, half, bool(level.keeps_norms))
        for optimizer, p, array in before:
            if level.masters and p.array.dtype != array.dtype:
                optimizer.keep_master(p, make_tensor(array, None))
        for model in models:
            keep_state_dict_float32(model, optimizers)


def _cast(module: Any, half: Any, keeps_norms: bool) -> None:
    """Parameters and buffers to half, except those of modules that shall stay float32."""
    policy = module.__dict__.get("policy")
    if isinstance(policy, Policy) and policy.compute_dtype == dtypes.float32:
        return
    if not (keeps_norms and module.keeps_float32):
        for p in module.parameters(recurse=False):
            gradient, p.grad = p.grad, None
            p.data = p.data.to(half)
            p.grad = None if gradient is None else gradient.to(half)
        for name, buffer in module.named_buffers(recurse=False):
            if buffer.is_floating_point():
                setattr(module, name, buffer.to(half))
    for child in module.children():
        _cast(child, half, keeps_norms)


class _CastInputs:
    """A hook before forward: floating inputs to a dtype."""

    def __init__(self, dtype: Any):
        self.dtype = dtype

    def __call__(self, module: Any, args: tuple, kwargs: dict) -> Any:
        return map_tensors(lambda t: t.to(self.dtype) if t.is_floating_point() else t, (args, kwargs))


class _CastOutputs:
    """A hook after forward: floating outputs to a dtype; float64 ones stay."""

    def __init__(self, dtype: Any):
        self.dtype = dtype

    def __call__(self, module: Any, args: tuple, output: Any) -> Any:
        return map_tensors(lambda t: t.to(self.dtype) if t.is_floating_point() and t.dtype != dtypes.float64 else t, output)
