"""The worker of the mutation tests over the plain simulator."""

import pytest

from aclnn_bindings.install.library import bundled_simulator

from . import tree
from .judge import every_op


@pytest.mark.skipif(bundled_simulator() is None, reason="the simulator is not built")
def test_a_worker_names_the_operators_of_its_install(monkeypatch):
    monkeypatch.setattr(tree, "install", bundled_simulator)
    assert {"add", "aclnnAdd"} <= set(every_op())
