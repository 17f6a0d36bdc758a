"""Functions of layers: activations, convolutions, pooling, normalization, losses and the like, under PyTorch's names."""

from ..tensor.checked import check_all
from ..tensor.ops.activation import (
    celu, celu_, elu, elu_, gelu, glu, hardshrink, hardsigmoid, hardswish, hardtanh, hardtanh_, leaky_relu, leaky_relu_,
    logsigmoid, mish, prelu, relu, relu6, relu_, rrelu, rrelu_, selu, selu_, silu, softplus, softshrink, softsign,
    tanhshrink, threshold, threshold_,
)
from ..tensor.ops.attention import scaled_dot_product_attention
from ..tensor.ops.convolution import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d, fold, unfold
from ..tensor.ops.cross_entropy import cross_entropy, nll_loss
from ..tensor.ops.ctc import ctc_loss
from ..tensor.ops.dropout import alpha_dropout, dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout
from ..tensor.ops.embedding import embedding, embedding_bag, one_hot
from ..tensor.ops.linear import bilinear, linear
from ..tensor.ops.loss import (
    binary_cross_entropy, binary_cross_entropy_with_logits, gaussian_nll_loss, huber_loss, kl_div, l1_loss, mse_loss,
    poisson_nll_loss, smooth_l1_loss,
)
from ..tensor.ops.margin_loss import (
    cosine_embedding_loss, hinge_embedding_loss, margin_ranking_loss, multi_margin_loss, multilabel_margin_loss,
    multilabel_soft_margin_loss, soft_margin_loss, triplet_margin_loss, triplet_margin_with_distance_loss,
)
from ..tensor.ops.normalization import batch_norm, group_norm, instance_norm, layer_norm, local_response_norm, rms_norm
from ..tensor.ops.padding import channel_shuffle, pad, pixel_shuffle, pixel_unshuffle
from ..tensor.ops.pointwise import sigmoid
from ..tensor.ops.pooling import (
    adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d, adaptive_max_pool1d, adaptive_max_pool2d,
    adaptive_max_pool3d, avg_pool1d, avg_pool2d, avg_pool3d, lp_pool1d, lp_pool2d, lp_pool3d, max_pool1d, max_pool2d,
    max_pool3d, max_unpool1d, max_unpool2d, max_unpool3d, max_pool1d_with_indices, max_pool2d_with_indices,
    max_pool3d_with_indices, adaptive_max_pool1d_with_indices, adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d_with_indices,
)
from ..tensor.ops.resampling import affine_grid, grid_sample, interpolate, upsample, upsample_bilinear, upsample_nearest
from ..tensor.ops.segment import segment_max, segment_mean, segment_min, segment_softmax, segment_sum
from ..tensor.ops.similarity import cosine_similarity, normalize, pairwise_distance, pdist
from ..tensor.ops.softmax import gumbel_softmax, log_softmax, softmax, softmin
from ..tensor.ops.trigonometry import tanh
from ..tensor.out import with_out

normalize = with_out(normalize)
check_all(globals())
del check_all, with_out
