"""Third floor: a Trainer as CNTK has it, training sessions, progress writers and checkpoints."""

from .bar import ProgressBar
from .checkpoint import Checkpoint
from .csv_log import CSVProgressWriter
from .plot import plot_logs
from .progress import ProgressPrinter, ProgressWriter
from .session import CheckpointConfig, CrossValidationConfig, DataUnit, TestConfig, TrainingSession, training_session
from .tensorboard import TensorBoardProgressWriter
from .trainer import Trainer
