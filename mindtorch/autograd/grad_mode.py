"""torch.autograd.grad_mode: the module `_autograd.grad_mode` under torch's name."""

import sys

from .._autograd import grad_mode

sys.modules[__name__] = grad_mode
