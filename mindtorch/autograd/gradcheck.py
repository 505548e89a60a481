"""torch.autograd.gradcheck: the module `_autograd.gradcheck` under torch's name."""

import sys

from .._autograd import gradcheck

sys.modules[__name__] = gradcheck
