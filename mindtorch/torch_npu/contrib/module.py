"""torch_npu.contrib.module: the same layers by the address that older programs name."""

from . import *  # noqa: F403
from . import __all__ as __all__
