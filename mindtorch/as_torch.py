"""`import mindtorch.as_torch`: from here on, `import torch` in this process gives mindtorch.

For programs that cannot be changed there is `mindtorch-npu exec -- python train.py`.
"""

from ._compat.torch_shim.absent import absent_counts as absent_names
from ._compat.torch_shim.finder import install, installed

__all__ = ["absent_names", "install", "installed"]

install()
