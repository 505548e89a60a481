"""torch.testing: comparing what may differ by rounding, and making tensors to test with."""

from . import _utils as _utils
from ._comparison import assert_allclose, assert_close
from ._creation import make_tensor
from ._filecheck import FileCheck as FileCheck

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
