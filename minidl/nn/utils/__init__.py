"""What networks need beside layers: gradients clipped, parameters as one vector, reparametrized weights, sequences of
different lengths."""

from . import rnn
from .clip_grad import clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm
from .spectral_norm import remove_spectral_norm, spectral_norm
from .vectors import parameters_to_vector, vector_to_parameters
from .weight_norm import remove_weight_norm, weight_norm
