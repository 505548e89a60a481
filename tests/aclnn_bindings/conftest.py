"""Fixtures of the bindings' tests: the stub ACL, and one session of it per test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from stub_acl import Stub, build, declare

from aclnn_bindings.interface.signature import Declarations
from aclnn_bindings.runtime.runtime import running


@pytest.fixture(scope="session")
def stub_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("stub"))


@pytest.fixture(scope="session")
def stub_declarations() -> Declarations:
    return declare()


@pytest.fixture
def stub(stub_library: Path, stub_declarations: Declarations) -> Iterator[Stub]:
    """The stub with everything released and every knob at rest, before and after.

    A process has one runtime: one that another test left running is closed first.
    """
    if (other := running()) is not None:
        other.close()
    made = Stub(stub_library, stub_declarations)
    made.reset()
    yield made
    made.reset()
    made.cann.close()
