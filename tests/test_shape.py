"""Shapes, axes and parts: memory is shared where it can be, in-place edits through views are recorded, errors say what."""

import numpy as np
import pytest

import minidl

# Each shows all or part of a (2, 3, 4) tensor without copying.
VIEWS = {
    "reshape": lambda x: x.reshape(6, 4),
    "view": lambda x: x.view(-1),
    "view_as": lambda x: x.view_as(minidl.zeros(4, 6)),
    "flatten": lambda x: x.flatten(1),
    "ravel": lambda x: x.ravel(),
    "unflatten": lambda x: x.unflatten(-1, (2, 2)),
    "squeeze": lambda x: x.narrow(0, 1, 1).squeeze(0),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "atleast_3d": lambda x: minidl.atleast_3d(x.select(0, 1)),
    "permute": lambda x: x.permute(2, 0, 1),
    "transpose": lambda x: x.transpose(0, 2),
    "swapaxes": lambda x: x.swapaxes(1, 2),
    "t": lambda x: x.select(0, 0).t(),
    "movedim": lambda x: x.movedim(0, -1),
    "expand to the same": lambda x: x.expand(-1, 3, 4),
    "expand with a new axis": lambda x: x.expand(1, -1, -1, -1),
    "select": lambda x: x.select(1, -1),
    "select down to 0-d": lambda x: x.select(0, 1).select(0, 2).select(0, 3),
    "narrow": lambda x: x.narrow(2, 1, 2),
    "unbind": lambda x: x.unbind(1)[1],
    "split": lambda x: x.split(3, 2)[0],
    "split lengths": lambda x: x.split([1, 3], 2)[1],
    "chunk": lambda x: x.chunk(2, 1)[1],
    "tensor_split": lambda x: x.tensor_split(3, 2)[2],
    "tensor_split at": lambda x: x.tensor_split((1, 2), 1)[1],
    "hsplit": lambda x: x.hsplit(3)[2],
    "vsplit": lambda x: x.vsplit(2)[0],
    "dsplit": lambda x: x.dsplit([1])[1],
    "diagonal": lambda x: x.diagonal(1, 0, 2),
    "unfold without overlap": lambda x: x.unfold(2, 2, 2),
    "reshape of a permutation": lambda x: x.permute(1, 0, 2).reshape(3, 2, 2, 2),
    "meshgrid": lambda x: minidl.meshgrid(x.view(-1))[0],
}
views = pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)


def numbers():
    return minidl.tensor(np.arange(1.0, 25.0).reshape(2, 3, 4))


@views
def test_views_share_memory(view):
    x = numbers()
    shown = view(x)
    assert np.shares_memory(shown.numpy(), x.numpy())
    shown.mul_(-1.0)
    assert (x.numpy() < 0).sum() == shown.numel()


@views
def test_a_write_through_a_view_reaches_the_gradient_of_the_base(view):
    """As if the places shown had been replaced: their old values have no influence, the written ones have."""
    start = numbers().requires_grad_()
    x = start * 1.0
    before = view(x)
    factor = minidl.full(before.shape, 3.0, dtype=minidl.float64, requires_grad=True)
    view(x).mul_(factor)
    weights = minidl.tensor(np.cos(np.arange(24.0)).reshape(2, 3, 4))
    (x * weights).sum().backward()
    shown = np.zeros((2, 3, 4), bool)
    view(minidl.as_tensor(shown)).numpy()[...] = True
    np.testing.assert_allclose(start.grad.numpy(), weights.numpy() * np.where(shown, 3.0, 1.0))
    np.testing.assert_allclose(factor.grad.numpy(), (view(numbers()) * view(weights)).numpy())


@pytest.mark.parametrize("view", [
    pytest.param(view, id=name) for name, view in VIEWS.items()])
def test_a_view_made_before_an_edit_of_its_base_sees_it(view):
    start = numbers().requires_grad_()
    x = start * 1.0
    shown = view(x)
    x.mul_(2.0)
    shown.sum().backward()
    assert set(np.unique(start.grad.numpy())) <= {0.0, 2.0}
    assert (start.grad.numpy() == 2).sum() == shown.numel()


def test_a_copying_reshape_is_no_view():
    start = numbers().requires_grad_()
    x = start * 1.0
    copy = x.permute(2, 1, 0).reshape(-1)
    assert copy.view_of is None and not np.shares_memory(copy.numpy(), x.numpy())
    copy.mul_(5.0)
    x.sum().backward()
    np.testing.assert_array_equal(start.grad.numpy(), np.ones((2, 3, 4)))


@pytest.mark.parametrize("copying", [
    lambda x: x.flip(()), lambda x: x.flip(0), lambda x: x.repeat(1, 1, 1), lambda x: x.roll(0), lambda x: x.rot90(0),
    lambda x: x.repeat_interleave(1, 0), lambda x: x.tril(9), lambda x: x.clone(), lambda x: minidl.cat([x]),
    lambda x: x.select(0, 0).diag(), lambda x: minidl.tile(x, (1,)),
], ids=["flip nothing", "flip", "repeat", "roll", "rot90", "repeat_interleave", "tril", "clone", "cat", "diag", "tile"])
def test_copies_have_memory_of_their_own(copying):
    x = numbers()
    assert not np.shares_memory(copying(x).numpy(), x.numpy())


def test_reshape_and_contiguous_copy_only_where_they_must():
    x = numbers()
    assert x.contiguous() is x
    assert x.transpose(0, 1).contiguous().numpy().flags.c_contiguous
    assert np.shares_memory(x.transpose(0, 1).reshape(3, 2, 2, 2).numpy(), x.numpy())


def test_view_reads_the_bytes_as_another_dtype():
    x = minidl.tensor([1.0, -2.0])
    assert x.view(minidl.int32).numpy().tolist() == [0x3F800000, -0x40000000]
    assert x.view(minidl.int16).shape == (4,) and x.view(dtype=minidl.float64).shape == (1,)
    x.view(minidl.int32).numpy()[0] = 0
    assert x.numpy()[0] == 0
    same = x.requires_grad_().view(minidl.float32)
    assert same.requires_grad and not x.view(minidl.int32).requires_grad


def test_sizes_may_be_given_in_every_way():
    x = numbers()
    for size in (6, 4), ((6, 4),), ([6, -1],), (np.int64(6), -1):
        assert x.reshape(*size).shape == x.view(*size).shape == (6, 4)
    assert x.permute((2, 1, 0)).shape == x.permute(2, -2, 0).shape == (4, 3, 2)
    assert x.expand((5, -1, -1, -1)).shape == x.expand(5, 2, 3, 4).shape == (5, 2, 3, 4)
    assert minidl.broadcast_shapes((2, 1), 3, ()) == (2, 3)


def test_in_place_shape_changes():
    start = numbers().requires_grad_()
    x = start * 1.0
    assert x.transpose_(0, 2) is x and x.shape == (4, 3, 2)
    assert x.unsqueeze_(0).shape == (1, 4, 3, 2) and x.squeeze_(0).shape == (4, 3, 2)
    (x.select(0, 1).t_() * 2).sum().backward()
    np.testing.assert_array_equal(start.grad.numpy().sum((0, 1)), [0, 12, 0, 0])
    with pytest.raises(RuntimeError, match="leaf"):
        start.unsqueeze_(0)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0, 3)])
def test_empty_tensors(shape):
    x = minidl.zeros(shape)
    assert x.flatten().shape == x.reshape(-1).shape == (0,)
    assert x.flip(0).shape == x.roll(1, 0).shape == x.tril().shape == shape if len(shape) > 1 else True
    assert sum(part.shape[0] for part in x.split(1)) == shape[0]
    assert len(x.unbind(0)) == shape[0]
    assert x.repeat(*(2,) * len(shape)).numel() == 0
    assert x.repeat_interleave(2, 0).numel() == 0


def test_chunks_of_an_empty_axis():
    assert [part.shape for part in minidl.zeros(0, 2).chunk(3)] == [(0, 2)] * 3
    assert [part.shape for part in minidl.zeros(0, 2).split(0)] == [(0, 2)]


@pytest.mark.parametrize("call, error, words", [
    (lambda x: x.reshape(5, -1), RuntimeError, "24 elements"),
    (lambda x: x.reshape(-1, -1), RuntimeError, "at most one"),
    (lambda x: x.reshape(-2, -12), RuntimeError, "24 elements"),
    (lambda x: x.reshape(2.0, 12), TypeError, "integers"),
    (lambda x: minidl.zeros(0).reshape(0, -1), RuntimeError, "decide"),
    (lambda x: x.transpose(0, 1).view(24), RuntimeError, "use reshape"),
    (lambda x: minidl.zeros(3).view(minidl.float64), RuntimeError, "whole elements"),
    (lambda x: x.permute(0, 1), RuntimeError, "each of the 3 axes"),
    (lambda x: x.permute(0, 1, 1), RuntimeError, "once"),
    (lambda x: x.permute(0, 1, 3), IndexError, "3"),
    (lambda x: x.transpose(0, 3), IndexError, "dim"),
    (lambda x: x.t(), RuntimeError, "2 axes"),
    (lambda x: x.movedim((0, 1), 1), RuntimeError, "as many"),
    (lambda x: x.movedim((0, 0), (1, 2)), RuntimeError, "different"),
    (lambda x: x.expand(3, 4), RuntimeError, "broadcasts"),
    (lambda x: x.expand(-1, 2, 3, 4), RuntimeError, "existing axes"),
    (lambda x: x.expand(2, 3, 5), RuntimeError, "broadcasts"),
    (lambda x: minidl.broadcast_shapes((2,), (3,)), RuntimeError, "equal lengths"),
    (lambda x: x.sum_to_size(2, 4), RuntimeError, "broadcasts"),
    (lambda x: x.flatten(2, 1), RuntimeError, "start_dim"),
    (lambda x: x.unflatten(0, (3, -1)), RuntimeError, "2 elements"),
    (lambda x: x.unflatten(0, ()), RuntimeError, "sizes"),
    (lambda x: x.squeeze(3), IndexError, "dim"),
    (lambda x: x.squeeze((0, 0)), RuntimeError, "different"),
    (lambda x: x.unsqueeze(4), IndexError, "dim"),
    (lambda x: x.unsqueeze(0.0), TypeError, "integer"),
    (lambda x: x.select(0, 2), IndexError, r"\[-2, 1\]"),
    (lambda x: minidl.tensor(1.0).select(0, 0), IndexError, "0-d"),
    (lambda x: x.narrow(0, 1, 2), RuntimeError, "at most 2"),
    (lambda x: x.narrow(0, 3, 0), IndexError, "start"),
    (lambda x: x.narrow(0, 0, -1), RuntimeError, "negative"),
    (lambda x: x.split(0), RuntimeError, "positive"),
    (lambda x: x.split([1, 2]), RuntimeError, "add up to 2"),
    (lambda x: x.chunk(0), RuntimeError, "positive"),
    (lambda x: x.tensor_split(0), RuntimeError, "positive"),
    (lambda x: minidl.tensor(1.0).split(1), RuntimeError, "0-d"),
    (lambda x: minidl.tensor(1.0).unbind(), IndexError, "0-d"),
    (lambda x: x.hsplit(2), RuntimeError, "tensor_split"),
    (lambda x: minidl.zeros(3).vsplit(1), RuntimeError, "2 axes"),
    (lambda x: x.unfold(2, 5, 1), RuntimeError, "size"),
    (lambda x: x.unfold(2, 2, 0), RuntimeError, "step"),
    (lambda x: x.flip(0, 0), RuntimeError, "different"),
    (lambda x: minidl.zeros(3).fliplr(), RuntimeError, "2 axes"),
    (lambda x: x.roll((1, 2), 0), RuntimeError, "one shift"),
    (lambda x: x.roll(1, 3), IndexError, "dim"),
    (lambda x: x.rot90(1, (0, 0)), RuntimeError, "different"),
    (lambda x: x.rot90(1, (0,)), RuntimeError, "two dims"),
    (lambda x: x.repeat(2), RuntimeError, "3 axes"),
    (lambda x: x.repeat(1, 1, -1), RuntimeError, "negative"),
    (lambda x: x.repeat_interleave(-1), RuntimeError, "negative"),
    (lambda x: x.repeat_interleave(minidl.tensor([1, 2, 3]), 0), RuntimeError, "2 places"),
    (lambda x: x.repeat_interleave(minidl.tensor([1.0, 2.0]), 0), RuntimeError, "int64"),
    (lambda x: x.repeat_interleave(minidl.tensor([1, -2]), 0), RuntimeError, "-2"),
    (lambda x: x.repeat_interleave(minidl.tensor([1, 2]), 0, output_size=4), RuntimeError, "output_size 3"),
    (lambda x: x.repeat_interleave([1, 2], 0), TypeError, "list"),
])
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call(numbers())


def test_repeat_interleave_takes_one_count_for_all_and_a_known_size():
    x = minidl.tensor([[1, 2], [3, 4]])
    assert x.repeat_interleave(minidl.tensor([2]), 1).numpy().tolist() == [[1, 1, 2, 2], [3, 3, 4, 4]]
    assert x.repeat_interleave(minidl.tensor(2), 0).shape == (4, 2)
    assert x.repeat_interleave(minidl.tensor([0, 3]), 0, output_size=3).numpy().tolist() == [[3, 4]] * 3
    assert x.repeat_interleave(minidl.tensor([0, 0]), 0).shape == (0, 2)


def test_sum_to_size_of_integers_is_int64():
    assert minidl.ones(2, 3, dtype=minidl.bool).sum_to_size(3).dtype == minidl.int64


def test_windows_that_overlap_add_up_in_float32():
    x = minidl.ones(2050, dtype=minidl.float16, requires_grad=True)
    g = minidl.full((1, 2050), 1.0, dtype=minidl.float16)
    x.unfold(0, 2050, 1).backward(g)
    y = minidl.zeros(3000, dtype=minidl.float16, requires_grad=True)
    y.unfold(0, 1500, 1).sum().backward()
    assert x.grad.numpy().max() == 1 and y.grad.numpy().max() == 1500


def test_pytorchs_keywords_for_sizes_and_sections():
    x = minidl.arange(8).reshape(4, 2)
    assert minidl.broadcast_to(x[0], shape=(3, 2)).shape == minidl.broadcast_to(x[0], size=(3, 2)).shape == (3, 2)
    for parts in (minidl.tensor_split(x, sections=2), minidl.tensor_split(x, indices=(2,)), minidl.vsplit(x, sections=2),
                  minidl.tensor_split(x, tensor_indices_or_sections=minidl.tensor(2)), minidl.vsplit(x, indices=(2,))):
        assert [part.shape for part in parts] == [(2, 2), (2, 2)]
    for bad in (lambda: minidl.tensor_split(x), lambda: minidl.tensor_split(x, 2, sections=2), lambda: minidl.hsplit(x),
                lambda: minidl.broadcast_to(x)):
        with pytest.raises(TypeError, match="expected one of"):
            bad()
