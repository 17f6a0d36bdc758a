"""Second floor: mixed precision. autocast picks the dtype of each op, a loss scaler keeps small gradients alive."""

from ..tensor.autocast import autocast, lists
from .grad_scaler import GradScaler, StaticScaler
