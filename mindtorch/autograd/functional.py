"""torch.autograd.functional: the module `_autograd.functional` under torch's name."""

import sys

from .._autograd import functional

sys.modules[__name__] = functional
