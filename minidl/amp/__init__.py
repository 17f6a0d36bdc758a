"""Second floor: mixed precision. autocast picks the dtype of each op, a loss scaler keeps small gradients alive."""

from ..tensor.autocast import autocast, lists
from ..tensor.policy import Policy
from .custom import custom_bwd, custom_fwd
from .grad_scaler import GradScaler, StaticScaler
from .initialize import initialize
from .losses import load_state_dict, scale_loss, state_dict
from .masters import master_params
from .policy import global_policy, set_global_policy
