"""Torch's modules that mindtorch has for torch's programs alone: `mindtorch.jit`, `mindtorch.cuda`.

This folder is on `mindtorch.__path__`: its modules are imported as `mindtorch.jit`, under that name
only. They import each other relatively, and the rest of mindtorch absolutely.
"""

__path__ = []  # no second name: `mindtorch._compat.modules.jit` is not found
