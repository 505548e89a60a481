"""torch.autograd.graph: the module `_autograd.graph` under torch's name."""

import sys

from .._autograd import graph

sys.modules[__name__] = graph
