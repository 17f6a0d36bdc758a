"""Learning-rate schedules, with PyTorch's names, arguments and values; WarmupLR and cosine_with_warmup are our own."""

from .base import LRScheduler
from .compose import ChainedScheduler, SequentialLR, WarmupLR, cosine_with_warmup
from .cyclic import CyclicLR
from .factors import (ConstantLR, CosineAnnealingLR, CosineDecayLR, ExponentialLR, LinearLR, MultiStepLR, PolynomialLR,
                      StepLR)
from .functions import LambdaLR, MultiplicativeLR
from .one_cycle import OneCycleLR
from .plateau import ReduceLROnPlateau
from .warm_restarts import CosineAnnealingWarmRestarts
