"""Second floor: optimizers and learning-rate schedules."""

from .adam import Adam, AdamW
from .optimizer import Optimizer
from .sgd import SGD
