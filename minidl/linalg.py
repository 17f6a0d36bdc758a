"""Linear algebra under PyTorch's names for it, `minidl.linalg`."""

from .tensor.checked import check_all
from .tensor.ops.linalg import linalg_cross, matrix_power
from .tensor.ops.linalg_norm import matrix_norm, norm, vector_norm
from .tensor.out import with_out

cross = with_out(linalg_cross)
matrix_norm = with_out(matrix_norm)
matrix_power = with_out(matrix_power)
norm = with_out(norm)
vector_norm = with_out(vector_norm)
check_all(globals())

__all__ = ["cross", "matrix_norm", "matrix_power", "norm", "vector_norm"]
