"""What the reference refuses is a SKIP; where it breaks, it is an ERROR of the reference."""

import numpy as np
import pytest
from mindtorch_npu.conformance.cases.case import parse
from mindtorch_npu.conformance.run import laws
from mindtorch_npu.conformance.run.golden import ReferenceRefusesError, deliberate
from mindtorch_npu.conformance.run.rows import TorchRow

import mindtorch as torch
from mindtorch.ops import OPS


def caught(action):
    try:
        action()
    except Exception as error:
        return error
    return pytest.fail("nothing was raised")


def refusing():
    raise RuntimeError(
        f"a refusal of {len('several')} lines"
        f" or {len('more')}"
    )  # fmt: skip


@pytest.mark.parametrize(
    "action",
    [
        lambda: np.ones(3).reshape(2, -1),
        lambda: np.fmod(np.ones(2, complex), 1),
        lambda: np.flip(np.array(1.0), 0),
        lambda: ().__getitem__(1),
        lambda: int("x"),
    ],
)
def test_what_numpy_or_python_raises_in_the_midst_is_no_refusal(action):
    assert not deliberate(caught(action))


def test_refusals_of_ours_are_told_by_their_raise():
    assert deliberate(caught(refusing))
    assert deliberate(caught(lambda: torch.ones(2, 3) @ torch.ones(2, 3)))


def test_a_reference_that_breaks_is_an_error_of_the_reference(monkeypatch):
    cause = caught(lambda: np.ones(3).reshape(2, -1))

    def broken(*_args):
        raise ReferenceRefusesError(cause)

    monkeypatch.setattr(laws, "golden", broken)
    result, _ = laws.run(TorchRow(OPS["add"]), parse("add/functional/s0"), "cpu", 0)
    assert result.verdict == "ERROR"
    assert "defect of the CPU reference: ValueError" in result.reason
