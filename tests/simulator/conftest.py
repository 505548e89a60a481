"""The fixture that kernel tests share."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope="session")
def sim() -> Any:
    """Ops of the bundled simulator, called with torch tensors."""
    from kernel_harness import Simulator

    import aclnn_bindings

    return Simulator(aclnn_bindings.open(simulator=True))
