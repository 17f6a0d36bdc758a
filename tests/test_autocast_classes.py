"""autocast: the class of every function and operator, by the rows of the op table, and how lists changes it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import minidl
from minidl import amp, autograd
from minidl.autograd.op import Cast
from minidl.nn import functional as F
from tests.test_ops import ROWS, flat, is_float, outputs

HALVES = [minidl.float16, minidl.bfloat16]

CLASSES = {
    Cast.HALF: """
        addbmm addmm addmv addr attention baddbmm bmm chain_matmul conv1d conv2d conv3d conv_transpose1d conv_transpose2d
        conv_transpose3d einsum gradient gru_cell gru_layer linear lstm_cell lstm_layer matmul matrix_power mm mv prelu
        rnn_layer rnn_relu_cell rnn_tanh_cell""",
    Cast.FULL: """
        acos arccos arcsin asin binary_cross_entropy binary_cross_entropy_with_logits cdist cosh cosine_embedding_loss
        cosine_similarity cross_entropy ctc_loss cumprod cumsum dist erfinv exp exp2 expm1 gaussian_nll_loss group_norm
        hinge_embedding_loss huber_loss interpolate kl_div l1_loss layer_norm linalg.norm local_response_norm log log10 log1p
        log2 log_softmax logcumsumexp logsumexp lp_pool1d lp_pool2d lp_pool3d margin_ranking_loss matrix_norm mean mse_loss
        multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss nanmean nansum nll_loss norm normalize number
        pairwise_distance pdist poisson_nll_loss pow prod reciprocal rms_norm rsqrt segment_softmax sinh smooth_l1_loss
        soft_margin_loss softmax softmin softplus square std std_mean sum sum_to_size tan trapezoid trapz
        triplet_margin_loss triplet_margin_with_distance_loss upsample upsample_bilinear upsample_nearest var var_mean
        vector_norm""",
    Cast.WIDEST: """
        add addcdiv addcmul arctan2 atan2 bilinear block_diag cat clamp column_stack concat concatenate copysign cross
        diagonal_scatter diff div divide dot dstack embedding_bag floor_divide fmax fmin fmod ger grid_sample heaviside hstack
        hypot index_add index_copy index_put inner kron lerp linalg.cross logaddexp logaddexp2 masked_scatter max maximum min
        minimum mul multiply outer put remainder rsub scatter scatter_add scatter_reduce select_scatter slice_scatter stack sub
        subtract tensordot true_divide vdot vstack where xlogy""",
    Cast.KEEP: """
        abs absolute acosh adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
        adaptive_max_pool1d_with_indices adaptive_max_pool2d adaptive_max_pool2d_with_indices adaptive_max_pool3d
        adaptive_max_pool3d_with_indices affine_grid alpha_dropout amax amin aminmax arccosh arcsinh arctan arctanh asinh atan
        atanh atleast_1d atleast_2d atleast_3d avg_pool1d avg_pool2d avg_pool3d batch_norm broadcast_tensors broadcast_to
        cartesian_prod ceil celu channel_shuffle chunk clamp_max clamp_min clip clone combinations contiguous cos cummax cummin
        deg2rad diag diag_embed diagonal dropout dropout1d dropout2d dropout3d dsplit elu embedding erf erfc expand expand_as
        feature_alpha_dropout fix flatten flip fliplr flipud floor fold frac gather gelu glu hardshrink hardsigmoid hardswish
        hardtanh histc hsplit index_fill index_select instance_norm kthvalue leaky_relu logit logsigmoid masked_fill
        masked_select max_pool1d max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d max_pool3d_with_indices
        max_unpool1d max_unpool2d max_unpool3d median meshgrid mish mode moveaxis movedim msort nan_to_num nanmedian narrow neg
        negative pad permute pixel_shuffle pixel_unshuffle put_pixels rad2deg ravel relu relu6 repeat repeat_interleave reshape
        reshape_as roll rot90 round rrelu segment_max segment_mean segment_min segment_sum select selu sgn sigmoid sign silu
        sin sinc softshrink softsign sort split sqrt squeeze swapaxes swapdims t take take_along_dim take_pixels tanh
        tanhshrink tensor_split threshold tile topk trace transpose tril triu trunc unbind unflatten unfold unsqueeze view_as
        vsplit x[ _grid_fractions""",
    None: """all any argmax argmin argsort argwhere bincount bitwise_and bitwise_left_shift bitwise_not bitwise_or
        bitwise_right_shift bitwise_xor bucketize count_nonzero eq float_power ge greater greater_equal gt isclose isfinite isin
        isinf isnan isneginf isposinf isreal le less less_equal logical_and logical_not logical_or logical_xor lt nanquantile
        ne nonzero not_equal one_hot quantile searchsorted signbit tril_indices triu_indices unique
        unique_consecutive""",  # what gives integers, bools or float64, or takes no halves
}
CLASS_OF = {name: cast for cast, names in CLASSES.items() for name in names.split()}
CASES = {"interpolate area": Cast.KEEP, "matrix_power 0": Cast.KEEP, "matrix_power 1": Cast.KEEP}


def first_word(row) -> str:
    return "x[" if row.name.startswith("x[") else row.name.split()[0]


def class_of(row):
    return next((cast for start, cast in CASES.items() if row.name.startswith(start)), CLASS_OF[first_word(row)])


def floats_of(values) -> list:
    return [a for v in values for a in (floats_of(v) if isinstance(v, (list, tuple)) else [v] if is_float(v) else [])]


def filled(values, kinds):
    """The row's inputs as tensors, the floating ones of the dtypes that the iterator gives."""
    def convert(value):
        if is_float(value):
            return minidl.tensor(value.astype(next(kinds)))
        if isinstance(value, np.ndarray):
            return minidl.tensor(value)
        return type(value)([convert(v) for v in value]) if isinstance(value, (list, tuple)) else value

    return [convert(value) for value in values]


def patterns(row, cast, half) -> list:
    """Dtypes of the floating inputs: all alike, and, where the class takes mixed ones, with one of another dtype."""
    count, wide = len(floats_of(row.inputs)), minidl.float32
    uniform = [(wide,) * count, (half,) * count] if row.half else [(wide,) * count]
    if count < 2 or cast is Cast.KEEP or any(a.ndim == 0 for a in floats_of(row.inputs)):
        return uniform
    return [*uniform, (half, *(wide,) * (count - 1)), (wide, *(half,) * (count - 1)), (*(wide,) * (count - 1), half)]


def expected_dtype(cast, kinds, half):
    if cast is Cast.HALF:
        return half
    return minidl.float32 if cast is Cast.FULL or minidl.float32 in kinds else half


def floating(results) -> list:
    return [r for r in outputs(results) if isinstance(r, minidl.Tensor) and r.is_floating_point()]


CLASSED = [row for row in ROWS if CLASS_OF.get(first_word(row)) is not None and floats_of(row.inputs)]
rows = pytest.mark.parametrize("row", CLASSED, ids=repr)
halves = pytest.mark.parametrize("half", HALVES, ids=str)


# The classes

def test_every_row_of_the_op_table_has_a_class():
    names = {first_word(row) for row in ROWS}
    assert not names - CLASS_OF.keys(), "give these a class above"
    assert not CLASS_OF.keys() - names, "these have no row"
    assert len(CLASS_OF) == sum(len(names.split()) for names in CLASSES.values())


@halves
@rows
def test_the_output_has_the_dtype_of_the_class(row, half):
    cast = class_of(row)
    for kinds in patterns(row, cast, half):
        inputs = filled(row.inputs, iter(kinds))
        with amp.autocast(dtype=half):
            results = row.function(*inputs, **row.attributes)
        assert {r.dtype for r in floating(results)} <= {expected_dtype(cast, kinds, half)}, kinds


@rows
def test_float32_inputs_are_computed_as_outside_except_in_the_class_half(row):
    count = len(floats_of(row.inputs))

    def compute():
        minidl.manual_seed(0)
        return floating(row.function(*filled(row.inputs, itertools.repeat(minidl.float32, count)), **row.attributes))

    wants = compute()
    with amp.autocast():
        founds = compute()
    for found, want in zip(founds, wants, strict=True):
        tolerance = 0.02 * np.abs(want.numpy()).max(initial=1) if class_of(row) is Cast.HALF else 0
        np.testing.assert_allclose(found.numpy().astype(np.float32), want.numpy(), rtol=0, atol=tolerance)


@rows
def test_gradients_have_the_dtypes_of_the_inputs(row):
    cast = class_of(row)
    for kinds in patterns(row, cast, minidl.float16):
        inputs = filled(row.inputs, iter(kinds))
        leaves = [t for t in flat(inputs) if t.is_floating_point()]
        if not row.grad:
            return
        for leaf in leaves:
            leaf.requires_grad_()
        with amp.autocast():
            roots = [r for r in floating(row.function(*inputs, **row.attributes)) if r.requires_grad]
        if not roots:
            return
        grads = autograd.grad(roots, leaves, [minidl.ones_like(r) for r in roots], allow_unused=True)
        assert all(g is None or g.dtype == leaf.dtype for g, leaf in zip(grads, leaves)), kinds


@rows
def test_float64_passes_untouched(row):
    with amp.autocast():
        results = row.function(*filled(row.inputs, itertools.repeat(np.float64)), **row.attributes)
    assert {r.dtype for r in floating(results) if row.same_dtype} <= {minidl.float64}


PUBLIC = {}
for _space in (minidl.linalg, F, minidl):
    PUBLIC.update({name: getattr(_space, name) for name in CLASS_OF if hasattr(_space, name)})
MOVABLE = sorted(name for name, function in PUBLIC.items() if hasattr(function, "op") or hasattr(function, "body"))


@pytest.mark.parametrize("name", sorted(name for name in PUBLIC if CLASS_OF[name] in (Cast.HALF, Cast.FULL)))
def test_lists_can_move_all_that_changes_dtypes(name):
    aliases = {"arccos", "arcsin", "interpolate", "matrix_power", "segment_softmax", "square", "trapz", "upsample",
               "upsample_bilinear", "upsample_nearest"}
    assert name in aliases or name in MOVABLE


MOVED = [row for row in CLASSED if row.half and (hasattr(row.function, "op") or hasattr(row.function, "body"))
         and "rounding_mode" not in row.attributes]  # div is known by the op of /


@pytest.mark.parametrize("row", MOVED, ids=repr)
def test_lists_move_a_function_to_another_class(row):
    for argument, given, want in (("add_half", minidl.float32, minidl.float16), ("add_full", minidl.float16, minidl.float32)):
        with amp.lists(**{argument: [row.function]}), amp.autocast():
            results = row.function(*filled(row.inputs, itertools.repeat(given)), **row.attributes)
        assert {r.dtype for r in floating(results)} <= {want}


# Values by hand

@pytest.fixture
def x():
    return minidl.tensor(np.cos(np.arange(12, dtype=np.float32) ** 2).reshape(3, 4))


@pytest.fixture
def w():
    return minidl.tensor(np.sin(np.arange(16, dtype=np.float32) ** 2).reshape(4, 4), requires_grad=True)


CALLS = [
    ("@", lambda x, w: x @ w, Cast.HALF),
    ("Tensor.matmul", lambda x, w: x.matmul(w), Cast.HALF),
    ("exp", lambda x, w: x.exp(), Cast.FULL),
    ("**", lambda x, w: x ** 2, Cast.FULL),
    ("number **", lambda x, w: 2.0 ** x, Cast.FULL),
    ("1 /", lambda x, w: 1 / x, Cast.FULL),
    ("sum", lambda x, w: x.sum(), Cast.FULL),
    ("norm", lambda x, w: x.norm(), Cast.FULL),
    ("+ 1", lambda x, w: x + 1, Cast.KEEP),
    ("* 2.5", lambda x, w: x * 2.5, Cast.KEEP),
    ("/ 3", lambda x, w: x / 3, Cast.KEEP),
    ("index", lambda x, w: x[1:], Cast.KEEP),
    ("T", lambda x, w: x.T, Cast.KEEP),
    ("gumbel_softmax", lambda x, w: F.gumbel_softmax(x), Cast.FULL),
    ("dropout", lambda x, w: F.dropout(x, 0.5), Cast.KEEP),
    ("embedding", lambda x, w: F.embedding(minidl.tensor([0, 2]), x), Cast.KEEP),
    ("multi-layer", lambda x, w: F.softmax(F.relu(x @ w), -1), Cast.FULL),
]


@halves
@pytest.mark.parametrize("call, cast", [pytest.param(call, cast, id=name) for name, call, cast in CALLS])
def test_operators_methods_and_layers(call, cast, half, x, w):
    with amp.autocast(dtype=half):
        assert call(x, w).dtype == expected_dtype(cast, [minidl.float32], half)
        assert call(x.to(half), w).dtype == expected_dtype(cast, [half], half)


def test_integers_pass_untouched():
    numbers = minidl.tensor([[1, 2], [3, 4]])
    with amp.autocast():
        assert (numbers @ numbers).dtype == minidl.int64
        assert numbers.sum().dtype == minidl.int64
        assert numbers.exp().dtype == minidl.float32


DTYPE_CALLS = [
    ("sum", lambda x, d: x.sum(dtype=d)), ("mean", lambda x, d: x.mean(dtype=d)), ("prod", lambda x, d: x.prod(0, dtype=d)),
    ("nansum", lambda x, d: x.nansum(dtype=d)), ("cumsum", lambda x, d: x.cumsum(0, dtype=d)),
    ("cumprod", lambda x, d: x.cumprod(0, dtype=d)), ("softmax", lambda x, d: F.softmax(x, -1, d)),
    ("log_softmax", lambda x, d: F.log_softmax(x, -1, dtype=d)), ("norm", lambda x, d: x.norm(dtype=d)),
    ("vector_norm", lambda x, d: minidl.linalg.vector_norm(x, dtype=d)),
    ("linalg.norm", lambda x, d: minidl.linalg.norm(x, 1, dtype=d)),
]


@pytest.mark.parametrize("dtype", [minidl.float16, minidl.float32, minidl.float64], ids=str)
@pytest.mark.parametrize("call", [pytest.param(call, id=name) for name, call in DTYPE_CALLS])
def test_an_explicit_dtype_is_kept(call, dtype, x):
    with amp.autocast():
        assert call(x, dtype).dtype == dtype
        assert call(x.half(), dtype).dtype == dtype


def test_full_computes_in_float32_what_overflows_in_float16():
    large = minidl.full((4,), 300.0, dtype=minidl.float16)
    with amp.autocast():
        assert large.pow(2).sum().item() == 360000
        assert F.mse_loss(large, -large).item() == 360000
        assert large.norm().item() == 600


def test_binary_cross_entropy_runs_in_float32():
    likely = minidl.tensor([1 - 2 ** -11, 0.5], dtype=minidl.float16)
    with amp.autocast():
        loss = F.binary_cross_entropy(likely, minidl.ones(2))
    assert loss.dtype == minidl.float32 and abs(loss.item() - (np.log(2) - np.log(1 - 2 ** -11)) / 2) < 1e-6
