"""Products of matrices and vectors, and what is made of them."""

from __future__ import annotations

import builtins
import math
from operator import index as as_int

from ...autograd.op import Cast, Promote
from .. import dtypes
from ..apply import composed, op
from ..dims import one_dim
from .arithmetic import mul
from .diagonal import diagonal
from .reduction import sum as sum_of
from .shape import cast_to, clone, permute, reshape, unsqueeze

__all__ = ["addbmm", "addmm", "addmv", "addr", "baddbmm", "bmm", "chain_matmul", "cross", "dot", "ger", "inner", "kron",
           "matmul", "matrix_power", "mm", "mv", "outer", "tensordot", "trace", "vdot"]


# The matrix product

@op(Cast.HALF)
def matmul(xp, input, other):
    """Matrix product: of the last two axes, with broadcasting over those before; a vector is a row on the left and a column
    on the right, without that axis in the result.

    Raises:
        RuntimeError: for 0-d tensors, and for shapes that do not fit.
    """
    return product(xp, input, other)


@op(Cast.WIDEST, promote=Promote.SAME)
def _contract(xp, a, b):
    """matmul in autocast's class of tensordot and bilinear."""
    return product(xp, a, b)


@op(Cast.WIDEST, promote=Promote.SAME)
def _dot(xp, a, b):
    return xp.matmul(a, b), (lambda g: g * b, lambda g: g * a)


def product(xp, a, b):
    """The body of all matrix products: the value and the gradients of both factors.

    Where one factor has no batch of its own, its gradient is one product with the sum over the batch inside.
    """
    _check_product(a, b)
    if b.ndim == 1:
        return _product_with_vector(xp, a, b)
    if a.ndim == 1:
        return xp.matmul(a, b), (lambda g: xp.squeeze(xp.matmul(b, xp.expand_dims(g, -1)), -1),
                                 lambda g: xp.expand_dims(a, -1) * xp.expand_dims(g, -2))

    def left(g):
        return xp.matmul(g, xp.swapaxes(b, -1, -2))

    def right(g):
        return xp.matmul(xp.swapaxes(a, -1, -2), g)

    if b.ndim == 2 < a.ndim:
        return xp.matmul(a, b), (left, lambda g: xp.matmul(xp.swapaxes(_rows(xp, a), 0, 1), _rows(xp, g)))
    if a.ndim == 2 < b.ndim:
        return xp.matmul(a, b), (
            lambda g: xp.matmul(xp.swapaxes(_rows(xp, xp.swapaxes(g, -1, -2)), 0, 1), _rows(xp, xp.swapaxes(b, -1, -2))), right)
    return xp.matmul(a, b), (left, right)


def _product_with_vector(xp, a, b):
    if a.ndim == 1:
        return xp.matmul(a, b), (lambda g: g * b, lambda g: g * a)
    count = math.prod(a.shape[:-1])
    return xp.matmul(a, b), (lambda g: xp.expand_dims(g, -1) * b, lambda g: xp.matmul(xp.reshape(g, (count,)), _rows(xp, a)))


def _rows(xp, x):
    """All axes but the last as one."""
    return xp.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))


def _check_product(a, b):
    if not a.ndim or not b.ndim:
        raise RuntimeError(f"matmul expected tensors of at least one axis, got shapes {a.shape} and {b.shape}; use mul")
    if a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
        raise RuntimeError(f"matmul expected a second factor with {a.shape[-1]} rows, got shapes {a.shape} and {b.shape}; "
                           f"transpose one of them")
    if a.ndim > 2 and b.ndim > 2 and a.shape[:-2] != b.shape[:-2]:
        if builtins.any(m != n and m != 1 and n != 1 for m, n in zip(a.shape[-3::-1], b.shape[-3::-1])):
            raise RuntimeError(f"matmul expected leading axes that broadcast, got shapes {a.shape} and {b.shape}")
    if a.dtype.kind == "b":
        raise NotImplementedError("matmul expected numbers, got bool; cast the tensors first")


def broadcasts(shape, to):
    """True if a tensor of one shape can be expanded to another."""
    return len(shape) <= len(to) and builtins.all(m in (1, n) for m, n in zip(shape[::-1], to[::-1]))


def _expect(name, given, **axes):
    """RuntimeError unless each of the tensors `given` has the number of axes that is named."""
    for (what, count), tensor in zip(axes.items(), given):
        if tensor.ndim != count:
            raise RuntimeError(f"{name} expected {what} of {count} axes, got shapes "
                               f"{' and '.join(str(t.shape) for t in given)}")


@composed(Cast.HALF)
def mm(input, mat2):
    """Product of two matrices (n, m) and (m, p), without broadcasting."""
    _expect("mm", (input, mat2), input=2, mat2=2)
    return matmul(input, mat2)


@composed(Cast.HALF)
def bmm(input, mat2):
    """Products of matrices (b, n, m) and (b, m, p), without broadcasting."""
    _check_batches("bmm", input, mat2)
    return matmul(input, mat2)


def _check_batches(name, batch1, batch2):
    _expect(name, (batch1, batch2), batch1=3, batch2=3)
    if batch1.shape[0] != batch2.shape[0]:
        raise RuntimeError(f"{name} expected batches of one length, got shapes {batch1.shape} and {batch2.shape}")


@composed(Cast.HALF)
def mv(input, vec):
    """Product of a matrix (n, m) and a vector (m,)."""
    if input.ndim == 0:
        raise IndexError(f"mv expected a matrix and a vector, got shapes {input.shape} and {vec.shape}")
    _expect("mv", (input, vec), input=2, vec=1)
    return matmul(input, vec)


@composed(Cast.WIDEST)
def dot(input, tensor):
    """Sum of the products of two vectors' elements, 0-d.

    Raises:
        RuntimeError: for tensors that are not vectors of one length.
    """
    _expect("dot", (input, tensor), input=1, tensor=1)
    if input.shape != tensor.shape:
        raise RuntimeError(f"dot expected vectors of one length, got shapes {input.shape} and {tensor.shape}")
    return _dot(input, tensor)


@composed(Cast.WIDEST)
def vdot(input, other):
    """dot, which it equals for real numbers."""
    return dot(input, other)


def inner(input, other):
    """Sums of products over the last axis of both, whose other axes follow each other; mul where one is 0-d."""
    if input.ndim == 0 or other.ndim == 0:
        return mul(input, other)
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(f"inner expected last axes of one length, got shapes {input.shape} and {other.shape}")
    return tensordot(input, other, ([-1], [-1]))


def outer(input, vec2):
    """All products of two vectors' elements, (n, m)."""
    _expect("outer", (input, vec2), input=1, vec2=1)
    return mul(unsqueeze(input, 1), vec2)


def ger(input, vec2):
    """outer under its older name."""
    return outer(input, vec2)


# Sums with a product

@op(Cast.HALF)
def _plus_product(xp, input, a, b, *, beta, alpha):
    y, (left, right) = product(xp, a, b)
    if not broadcasts(input.shape, y.shape):
        raise RuntimeError(f"a sum with a product expected an input that broadcasts to the product's shape {y.shape}, got "
                           f"{input.shape}")
    if alpha != 1:
        y = y * alpha
    if beta != 0:
        y = y + (input if beta == 1 else input * beta)
    if alpha == 1:
        return y, (lambda g: g * beta, left, right)
    return y, (lambda g: g * beta, lambda g: left(g * alpha), lambda g: right(g * alpha))


def _weighted_sum(input, a, b, beta, alpha):
    """beta * input + alpha * a @ b; for integers the factors are cut to integers, as in PyTorch."""
    if input.dtype not in dtypes.FLOATING:
        beta, alpha = int(beta), int(alpha)
    return _plus_product(input, a, b, beta=beta, alpha=alpha)


@composed(Cast.HALF)
def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    """beta * input + alpha * mat1 @ mat2; with beta=0 what input holds does not matter, be it nan.

    Shapes: mat1 (n, m), mat2 (m, p), input broadcasts to (n, p).
    """
    _expect("addmm", (mat1, mat2), mat1=2, mat2=2)
    return _weighted_sum(input, mat1, mat2, beta, alpha)


@composed(Cast.HALF)
def addmv(input, mat, vec, *, beta=1, alpha=1):
    """beta * input + alpha * mat @ vec for a matrix (n, m) and a vector (m,)."""
    _expect("addmv", (mat, vec), mat=2, vec=1)
    return _weighted_sum(input, mat, vec, beta, alpha)


@composed(Cast.HALF)
def addr(input, vec1, vec2, *, beta=1, alpha=1):
    """beta * input + alpha * outer(vec1, vec2); of bools, with `or` for + and `and` for *."""
    _expect("addr", (vec1, vec2), vec1=1, vec2=1)
    if input.dtype not in dtypes.FLOATING and (isinstance(beta, float) or isinstance(alpha, float)):
        raise RuntimeError(f"addr expected integers as beta and alpha of an integer tensor, got {beta} and {alpha}")
    if builtins.all(t.dtype == dtypes.bool_ for t in (input, vec1, vec2)):
        found = addr(*[cast_to(t, dtypes.int8) for t in (input, vec1, vec2)], beta=int(beta != 0), alpha=int(alpha != 0))
        return cast_to(found, dtypes.bool_)
    return _weighted_sum(input, unsqueeze(vec1, 1), unsqueeze(vec2, 0), beta, alpha)


@composed(Cast.HALF)
def baddbmm(input, batch1, batch2, *, beta=1, alpha=1):
    """beta * input + alpha * batch1 @ batch2 for batches (b, n, m) and (b, m, p)."""
    _check_batches("baddbmm", batch1, batch2)
    return _weighted_sum(input, batch1, batch2, beta, alpha)


@composed(Cast.HALF)
def addbmm(input, batch1, batch2, *, beta=1, alpha=1):
    """beta * input + alpha * the sum of the products of matrices in batches (b, n, m) and (b, m, p)."""
    _check_batches("addbmm", batch1, batch2)
    (b, n, m), p = batch1.shape, batch2.shape[2]
    if batch2.shape[1] != m:
        raise RuntimeError(f"addbmm expected batch2 with {m} rows, got shapes {batch1.shape} and {batch2.shape}")
    rows, columns = reshape(permute(batch1, (1, 0, 2)), (n, b * m)), reshape(batch2, (b * m, p))
    return _weighted_sum(input, rows, columns, beta, alpha)


# Products of tensors

@composed(Cast.WIDEST)
def tensordot(a, b, dims=2):
    """Sums of products over pairs of axes; the other axes of a and then of b remain.

    Args:
        dims: a number of axes, the last ones of a and the first ones of b, or two sequences of axes.

    Raises:
        RuntimeError: for axes of different lengths, neither of them 1.
    """
    dims_a, dims_b = _axis_pairs(a, b, dims)
    for i, j in zip(dims_a, dims_b):  # as in PyTorch, an axis of length 1 is broadcast
        m, n = a.shape[i], b.shape[j]
        if m != n and 1 not in (m, n):
            raise RuntimeError(f"tensordot expected axes of equal lengths, got {m} for axis {i} of shape {a.shape} and {n} for "
                               f"axis {j} of shape {b.shape}")
    long = [(i, j) for i, j in zip(dims_a, dims_b) if a.shape[i] != b.shape[j]]
    short_a, short_b = [i for i, j in long if a.shape[i] > 1], [j for i, j in long if b.shape[j] > 1]
    a = sum_of(a, short_a, True, dtype=a.dtype) if short_a else a
    b = sum_of(b, short_b, True, dtype=b.dtype) if short_b else b
    free_a = [i for i in range(a.ndim) if i not in dims_a]
    free_b = [j for j in range(b.ndim) if j not in dims_b]
    shape = [a.shape[i] for i in free_a] + [b.shape[j] for j in free_b]
    inner_size = math.prod(a.shape[i] for i in dims_a)
    rows = reshape(permute(a, free_a + dims_a), (math.prod(a.shape[i] for i in free_a), inner_size))
    columns = reshape(permute(b, dims_b + free_b), (inner_size, math.prod(b.shape[j] for j in free_b)))
    return reshape(_contract(rows, columns), shape)


def _axis_pairs(a, b, dims):
    if hasattr(dims, "__index__") and not isinstance(dims, bool) and not getattr(dims, "ndim", 0):
        count = as_int(dims)
        if count < 0:
            raise RuntimeError(f"tensordot expected dims that are not negative, got {count}")
        if count > min(a.ndim, b.ndim):
            raise RuntimeError(f"tensordot expected at most {min(a.ndim, b.ndim)} dims, got {count} for shapes {a.shape} and "
                               f"{b.shape}")
        return list(range(a.ndim - count, a.ndim)), list(range(count))
    dims = dims.tolist() if hasattr(dims, "tolist") else dims
    first, second = ([d] if hasattr(d, "__index__") else list(d) for d in dims)
    if len(first) != len(second):
        raise RuntimeError(f"tensordot expected as many axes of a as of b, got {first} and {second}")
    pairs = [one_dim("tensordot", d, a.ndim) for d in first], [one_dim("tensordot", d, b.ndim) for d in second]
    if len(set(pairs[0])) != len(first) or len(set(pairs[1])) != len(second):
        raise RuntimeError(f"tensordot expected different axes, got {first} and {second}")
    return pairs


def kron(input, other):
    """Kronecker product: a block of `other`, scaled, for each element of `input`."""
    ndim = max(input.ndim, other.ndim)
    m = (1,) * (ndim - input.ndim) + input.shape
    n = (1,) * (ndim - other.ndim) + other.shape
    blocks = reshape(input, [size for length in m for size in (length, 1)])
    places = reshape(other, [size for length in n for size in (1, length)])
    return reshape(mul(blocks, places), [i * j for i, j in zip(m, n)])


@op(Cast.WIDEST)
def _cross(xp, a, b, *, axis):
    return xp.cross(a, b, axis), (lambda g: xp.cross(b, g, axis), lambda g: xp.cross(g, a, axis))


@composed(Cast.WIDEST)
def linalg_cross(input, other, *, dim=-1):
    """Cross product of the vectors of length 3 along an axis, with broadcasting over the others; linalg.cross.

    Raises:
        RuntimeError: for different numbers of axes, or vectors of another length.
    """
    if input.ndim != other.ndim:
        raise RuntimeError(f"cross expected tensors of as many axes, got shapes {input.shape} and {other.shape}")
    axis = one_dim("cross", dim, input.ndim)
    if input.ndim == 0 or input.shape[axis] != 3 or other.shape[axis] != 3:
        raise RuntimeError(f"cross expected vectors of length 3 along axis {axis}, got shapes {input.shape} and {other.shape}")
    return _cross(input, other, axis=axis)


@composed(Cast.WIDEST)
def cross(input, other, dim=None):
    """Cross product of the vectors along an axis; without `dim` the first axis of length 3."""
    if dim is None:
        dim = next((i for i, n in enumerate(input.shape) if n == 3), None)
        if dim is None:
            raise RuntimeError(f"cross expected an axis of length 3, got shape {input.shape}")
    return linalg_cross(input, other, dim=dim)


@composed(Cast.KEEP)
def trace(input):
    """Sum of a matrix's diagonal; int64 for integers."""
    if input.ndim != 2:
        raise RuntimeError(f"trace expected a matrix, got shape {input.shape}; use diagonal and sum")
    return sum_of(diagonal(input))


# Powers and chains

@op(Cast.FULL)
def inverse_of(xp, input):
    """Inverses of square matrices."""
    y = xp.inverse(input)

    def gradient(g):
        turned = xp.swapaxes(y, -1, -2)
        return -xp.matmul(xp.matmul(turned, g), turned)

    return y, gradient


@op(Cast.KEEP)
def _identity(xp, x):
    """Identity matrices in x's place."""
    return xp.zeros_like(x) + xp.eye(x.shape[-1], dtype=x.dtype), lambda g: g * 0


def matrix_power(input, n):
    """Product of n copies of square matrices (*, m, m); of their inverses for negative n, the identity for 0."""
    n = as_int(n)
    if input.ndim < 2 or input.shape[-1] != input.shape[-2]:
        raise RuntimeError(f"matrix_power expected square matrices, got shape {input.shape}")
    if n == 0:
        return _identity(input)
    base, out, n = (input if n > 0 else inverse_of(input)), None, builtins.abs(n)
    if n == 1:
        return clone(base) if base is input else base
    while n:
        if n % 2:
            out = base if out is None else matmul(out, base)
        n //= 2
        if n:
            base = matmul(base, base)
    return out


@composed(Cast.HALF)
def chain_matmul(*matrices):
    """Product of matrices in the order that takes the fewest multiplications.

    Source: Cormen et al., "Introduction to Algorithms", section 15.2.
    """
    if len(matrices) == 1 and isinstance(matrices[0], (tuple, list)):
        matrices = tuple(matrices[0])
    if not matrices:
        raise RuntimeError("chain_matmul expected at least one matrix")
    for matrix in matrices:
        _expect("chain_matmul", (matrix,), matrices=2)
    return _multiply(matrices, _best_cuts([m.shape[0] for m in matrices] + [matrices[-1].shape[1]]), 0, len(matrices))


def _multiply(matrices, cuts, start, stop):
    if stop - start == 1:
        return matrices[start]
    cut = cuts[start, stop]
    return matmul(_multiply(matrices, cuts, start, cut), _multiply(matrices, cuts, cut, stop))


def _best_cuts(sizes):
    """(start, stop) -> where to cut the product of the matrices from start to stop; matrix i is (sizes[i], sizes[i + 1])."""
    count = len(sizes) - 1
    cost, cuts = {(i, i + 1): 0 for i in range(count)}, {}
    for span in range(2, count + 1):
        for i in range(count - span + 1):
            j = i + span
            cost[i, j], cuts[i, j] = min((cost[i, k] + cost[k, j] + sizes[i] * sizes[k] * sizes[j], k) for k in range(i + 1, j))
    return cuts


METHODS = (addbmm, addmm, addmv, addr, baddbmm, bmm, cross, dot, ger, inner, kron, matmul, matrix_power, mm, mv, outer, trace,
           vdot)
IN_PLACE = (addbmm, addmm, addmv, addr, baddbmm)
ON_TENSORS = {"matmul": matmul, "cross": lambda a, b, axis: _cross(a, b, axis=axis)}
