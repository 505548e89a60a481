# The compiled extension: entry points of launch/api.h. Untyped at this edge only.
from typing import Any

ffi: Any
lib: Any
