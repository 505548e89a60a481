"""torch.autograd.function: the module `_autograd.function` under torch's name."""

import sys

from .._autograd import function

sys.modules[__name__] = function
