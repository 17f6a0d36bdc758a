"""How far results may be from the float64 reference, per dtype: (relative, absolute)."""

import minidl

TOLERANCES = {
    minidl.float64: (1e-9, 1e-10),
    minidl.float32: (2e-5, 2e-6),
    minidl.float16: (4e-3, 2e-3),
    minidl.bfloat16: (3e-2, 2e-2),
}
