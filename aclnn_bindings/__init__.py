"""Typed bindings to Ascend's ACL and ACLNN libraries, made from their headers.

import aclnn_bindings
cann = aclnn_bindings.open(simulator=True)
a, out = cann.tensor(array), cann.empty(array.shape)
cann.ops.aclnnAdd(self=a, other=a, alpha=1.0, out=out)
print(out.numpy())
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .cann import Cann

__all__ = ["open"]


def open(home: str | Path | None = None, simulator: bool = False) -> Cann:
    """Open an install: the one at `home`, the bundled simulator, or the first that is found.

    Loads and initialises nothing before the first use. InstallNotFoundError names where it looked.
    """
    from .cann import open_install

    return open_install(home, simulator)
