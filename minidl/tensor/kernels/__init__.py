"""Reference bodies of the kernels that a backend may do faster, a file per family. Backend inherits them all.

They are written over the backend's own elementary functions, so they run on NumPy, on CuPy and on Tensors.
"""
