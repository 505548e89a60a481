"""The spec rows by family, a module or folder each; importing the package declares all of them."""

from importlib import import_module
from pkgutil import walk_packages

from ....spec.row import ROWS
from ..row import SPECS, spec_of

for _module in walk_packages(__path__, f"{__name__}."):
    import_module(_module.name)
SPECS.update({name: spec_of(row, name) for name, row in ROWS.items()
              if row.module.startswith(__name__)})  # fmt: skip
