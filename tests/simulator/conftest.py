"""The fixture that kernel tests share."""

import os
from typing import Any

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "product: an operator that the default product lacks")


@pytest.fixture(scope="session")
def sim() -> Any:
    """Ops of the bundled simulator, called with torch tensors.

    ACLSIM_TEST_HOME names another build of it, with sanitizers for example.
    """
    from kernel_harness import Simulator

    import aclnn_bindings

    home = os.environ.get("ACLSIM_TEST_HOME")
    return Simulator(aclnn_bindings.open(home, simulator=not home))


@pytest.fixture(scope="session")
def nops() -> Any:
    """The same, called with numpy arrays."""
    from numpy_harness import Ops

    import aclnn_bindings

    home = os.environ.get("ACLSIM_TEST_HOME")
    return Ops(aclnn_bindings.open(home, simulator=not home))
