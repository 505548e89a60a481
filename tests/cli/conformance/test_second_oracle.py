"""The second witness answers from a process of its own, whose death is no verdict on the device."""

import os
import signal
from types import SimpleNamespace

import numpy as np
import pytest
from mindtorch_npu.conformance.cases.case import designed
from mindtorch_npu.conformance.cases.recipe import recipe
from mindtorch_npu.conformance.record.result import Result
from mindtorch_npu.conformance.run import laws, second_oracle

from mindtorch.ops import OPS


def test_answer_comes_back_as_it_was():
    (said,) = second_oracle.apart(lambda: [np.arange(3.0)])
    np.testing.assert_array_equal(said, np.arange(3.0))


@pytest.mark.parametrize("number", [signal.SIGFPE, signal.SIGKILL])
def test_witness_that_dies_says_nothing(number):
    signal.signal(signal.SIGFPE, signal.SIG_DFL)
    assert second_oracle.apart(lambda: os.kill(os.getpid(), number)) is None


def test_witness_that_raises_says_nothing():
    assert second_oracle.apart(lambda: [1 // 0]) is None


def test_torch_is_heard():
    pytest.importorskip("torch", reason="torch is the witness")
    drawn = recipe(OPS["sub"], designed("sub", "functional", {"dtype": "int32"}), 0)
    (said,) = second_oracle.testify(OPS["sub"], drawn)
    first, second = (slot.array for slot in drawn.slots)
    np.testing.assert_array_equal(said, first - second)


@pytest.mark.parametrize(
    ("theirs", "verdict", "says"),
    [
        (0.0, "FAIL", "torch agrees with the reference"),
        (1.0, "ERROR", "the reference stands alone"),
        (5.0, "FAIL", "torch agrees with neither"),
    ],
)
def test_verdict_says_who_stands_alone(monkeypatch, theirs, verdict, says):
    asked = SimpleNamespace(op=None, recipe=None, outputs=[np.ones(3)], expected=[np.zeros(3)])
    monkeypatch.setattr(laws, "testify", lambda _op, _recipe: [np.full(3, theirs)])
    heard = laws.heard(Result("a/functional", "a", "functional", "FAIL", reason="off"), asked)
    assert heard.verdict == verdict
    assert says in heard.reason
