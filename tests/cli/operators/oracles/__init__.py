"""What torch, or a calculation by hand, gives for the reference rows: a module for each of theirs.

`ORACLES` maps an operator to torch's results (or None) for the arguments of a sample; `BY_HAND`
lists operators with arguments and results. Torch must be there before this is imported.
"""

from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

ORACLES = {}
BY_HAND = []
# Operator -> the module of its oracle, relative to this folder.
PLACES = {}

for _info in walk_packages(__path__, f"{__name__}."):
    _module = import_module(_info.name)
    _hand = getattr(_module, "BY_HAND", [])
    _oracles = getattr(_module, "ORACLES", {})
    ORACLES |= _oracles
    BY_HAND += _hand
    _path = Path(_module.__file__)
    PLACES |= dict.fromkeys([*_oracles, *(name for name, _, _ in _hand)], _path)
