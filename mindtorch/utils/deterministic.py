"""torch.utils.deterministic: whether deterministic algorithms fill memory that nobody wrote."""

import sys
from types import ModuleType

from .._tensor.settings import SETTINGS


class _Deterministic(ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether torch.empty and its kin are filled; RuntimeError for what is no bool."""
        return bool(SETTINGS["fill"])

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise RuntimeError(f"expected a bool, but got {type(mode).__name__}")
        SETTINGS["fill"] = mode


sys.modules[__name__].__class__ = _Deterministic
