# The compiled extension: entry points of kernels/kernels.h. Untyped at this edge only.
from typing import Any

ffi: Any
lib: Any
