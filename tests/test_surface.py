"""Every public name is where PyTorch has it; the lists are written by hand so that a missing export is found."""

from __future__ import annotations

import pytest

import minidl
from minidl import Tensor
from minidl.nn import functional

TENSOR = """
    T data device dtype grad grad_fn is_leaf mT ndim requires_grad shape
    backward bfloat16 bool contiguous cpu cuda detach dim double float half int is_contiguous item long numel numpy
    register_hook requires_grad_ retain_grad size stride to tolist type_as
    __array__ __array_priority__ __dlpack__ __dlpack_device__ __getitem__ __setitem__ __len__ __iter__ __bool__ __int__
    __float__ __index__ __contains__ __deepcopy__ __reduce_ex__ __repr__ __add__ __radd__ __iadd__ __sub__ __rsub__ __isub__
    __mul__
    __rmul__ __imul__ __truediv__ __rtruediv__ __itruediv__ __floordiv__ __rfloordiv__ __mod__ __rmod__ __pow__ __rpow__
    __matmul__ __rmatmul__ __neg__ __abs__ __and__ __rand__ __or__ __ror__ __xor__ __rxor__ __invert__ __eq__ __ne__ __lt__
    __le__ __gt__ __ge__
"""

IN_PLACE = """
    abs acos acosh add addbmm addcdiv addcmul addmm addmv addr asin asinh atan atan2 atanh baddbmm bernoulli ceil clamp
    clamp_max clamp_min copy copysign cos cosh cumprod cumsum deg2rad div eq erf erfc exp exp2 expm1 fill floor floor_divide
    fmod frac ge gt heaviside hypot index_add index_copy index_fill index_put le lerp log log10 log1p log2 logical_and
    logical_not logical_or logical_xor lt masked_fill masked_scatter mul nan_to_num ne neg normal pow rad2deg reciprocal
    remainder round rsqrt scatter scatter_add scatter_reduce sigmoid sign sin sinc sinh sqrt square squeeze sub t tan tanh
    transpose tril triu true_divide trunc uniform unsqueeze xlogy zero
"""

MODULE = """
    Generator Tensor as_tensor device enable_grad finfo from_dlpack from_numpy get_default_dtype get_num_threads iinfo
    inference_mode is_tensor no_grad set_default_dtype set_grad_enabled set_num_threads tensor
    bfloat16 bool float16 float32 float64 int16 int32 int64 int8 uint8
    cuda.device_count cuda.is_available cuda.synchronize linalg.norm linalg.vector_norm autograd.Function autograd.checkpoint
    autograd.functional.hessian autograd.functional.jacobian autograd.functional.jvp autograd.functional.vjp autograd.grad
    autograd.gradcheck autograd.gradgradcheck autograd.set_detect_anomaly
"""

FUNCTIONS_ONLY = """
    arange atleast_1d atleast_2d atleast_3d block_diag broadcast_tensors bucketize cat cdist column_stack dstack einsum empty
    empty_like eye full full_like hstack isin linspace logspace meshgrid normal ones ones_like rand rand_like randint randn
    randn_like randperm searchsorted stack std_mean tensordot tril_indices triu_indices var_mean vstack zeros zeros_like rsub
    fill
"""  # kept apart: not, or not under this meaning, methods of PyTorch's tensors

METHODS_ONLY = """
    contiguous expand expand_as new_empty new_full new_ones new_zeros repeat reshape_as sum_to_size unfold view view_as
"""

FUNCTIONS_AND_METHODS = """
    abs acos acosh add addbmm addcdiv addcmul addmm addmv addr all allclose amax amin aminmax any argmax argmin argsort asin
    asinh atan atan2 atanh baddbmm bernoulli bincount bmm broadcast_to ceil chunk clamp clamp_max clamp_min clone copysign cos
    cosh count_nonzero cross cummax cummin cumprod cumsum deg2rad diag diag_embed diagonal diff dist div dot eq equal erf erfc
    exp exp2 expm1 flatten flip fliplr flipud floor floor_divide fmax fmin fmod frac gather ge gt heaviside hypot index_add
    index_copy index_fill index_put index_select inner isclose isfinite isinf isnan isneginf isposinf kron kthvalue le lerp log
    log10 log1p log2 log_softmax logaddexp logaddexp2 logcumsumexp logical_and logical_not logical_or logical_xor logsumexp lt
    masked_fill masked_scatter masked_select matmul max maximum mean median min minimum mm movedim mul multinomial mv
    nan_to_num nanmean nansum narrow ne neg nonzero norm outer permute positive pow prod quantile rad2deg ravel reciprocal
    remainder repeat_interleave reshape roll rot90 round rsqrt scatter scatter_add scatter_reduce select sigmoid sign signbit
    sin sinc sinh softmax sort split sqrt square squeeze std sub sum t take take_along_dim tan tanh tensor_split tile topk
    trace transpose tril triu true_divide trunc unbind unflatten unique unsqueeze var where xlogy
"""

FUNCTIONAL = """
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d
    avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d lp_pool1d lp_pool2d lp_pool3d max_unpool1d max_unpool2d
    max_unpool3d batch_norm instance_norm group_norm layer_norm rms_norm local_response_norm bilinear linear conv1d conv2d
    conv3d conv_transpose1d conv_transpose2d conv_transpose3d unfold fold embedding embedding_bag one_hot dropout dropout1d
    dropout2d dropout3d alpha_dropout interpolate grid_sample pad pixel_shuffle pixel_unshuffle channel_shuffle
    scaled_dot_product_attention cosine_similarity pairwise_distance pdist normalize glu relu relu6 leaky_relu prelu elu selu
    celu gelu silu mish hardtanh hardsigmoid hardswish hardshrink softshrink softplus softsign tanhshrink threshold logsigmoid
    softmin softmax log_softmax sigmoid tanh cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss kl_div
    binary_cross_entropy binary_cross_entropy_with_logits gaussian_nll_loss poisson_nll_loss cosine_embedding_loss
    hinge_embedding_loss margin_ranking_loss multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss
    soft_margin_loss triplet_margin_loss triplet_margin_with_distance_loss ctc_loss
"""


def missing(owner, names):
    """Those of the dotted names that the owner lacks."""
    def found(name):
        place = owner
        for part in name.split("."):
            if not hasattr(place, part):
                return False
            place = getattr(place, part)
        return True

    return [name for name in names if not found(name)]


@pytest.mark.parametrize("names", [MODULE, FUNCTIONS_ONLY, FUNCTIONS_AND_METHODS], ids=["module", "functions", "both"])
def test_functions(names):
    assert missing(minidl, names.split()) == []


@pytest.mark.parametrize("names, suffix", [(TENSOR, ""), (METHODS_ONLY, ""), (FUNCTIONS_AND_METHODS, ""), (IN_PLACE, "_")],
                         ids=["tensor", "methods", "both", "in-place"])
def test_tensor_methods(names, suffix):
    assert missing(Tensor, [name + suffix for name in names.split()]) == []


def test_nn_functional():
    assert missing(functional, FUNCTIONAL.split()) == []
