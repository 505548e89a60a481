"""`import mindtorch.as_torch`: from here on, `import torch` in this process gives mindtorch.

For programs that cannot be changed there is `mindtorch-npu exec -- python train.py`.
"""

from mindtorch._standin.absent import asked as absent_names
from mindtorch._standin.finder import install, installed

__all__ = ["absent_names", "install", "installed"]

install()
