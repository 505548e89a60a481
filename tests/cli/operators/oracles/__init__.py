"""What torch gives for the reference rows of operators that it has: a module for each of theirs.

`ORACLES` maps an operator to torch's results (or None) for the arguments of a sample. Torch must be
there before this is imported.
"""

from importlib import import_module
from pkgutil import walk_packages

ORACLES = {}
for _info in walk_packages(__path__, f"{__name__}."):
    ORACLES |= getattr(import_module(_info.name), "ORACLES", {})
