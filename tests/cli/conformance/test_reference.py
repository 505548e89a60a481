"""What the reference refuses is a SKIP; where it breaks, it is an ERROR of the reference."""

import numpy as np
import pytest
from mindtorch_npu.conformance.cases.case import parse
from mindtorch_npu.conformance.cases.recipe import recipe
from mindtorch_npu.conformance.cases.supported_dtypes import takes
from mindtorch_npu.conformance.run import laws
from mindtorch_npu.conformance.run.reference import ReferenceRefusesError, deliberate, golden
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


def test_inputs_that_a_composite_writes_are_results_of_it():
    what, case = TorchRow(OPS["native_batch_norm"]), parse("native_batch_norm/functional/s0")
    inputs = recipe(what, case, 0)
    reference = golden(what.op, inputs, what.requirement("float32"), "functional")
    assert reference.moved == (3, 4)
    batch, mean = inputs.slots[0].array, inputs.slots[3].array
    moved = 0.9 * mean.astype(np.float64) + 0.1 * batch.astype(np.float64).mean((0, 2))
    np.testing.assert_allclose(reference.values[-2], moved, rtol=1e-7)
    result, _ = laws.run(what, case, "cpu", 0)
    assert (result.verdict, result.guards) == ("PASS", ())


def test_inputs_that_the_device_does_not_write_as_the_reference_does_fail(monkeypatch):
    what, case = TorchRow(OPS["native_batch_norm"]), parse("native_batch_norm/functional/s0")
    kept = laws.call

    def forgetful(op, args, kwargs, form):
        copies = [a.clone() if hasattr(a, "clone") else a for a in args]
        return kept(op, copies, kwargs, form)

    monkeypatch.setattr(laws, "call", forgetful)
    result, _ = laws.run(what, case, "cpu", 0)
    assert result.verdict == "FAIL"


def test_real_values_that_a_row_states_get_imaginary_parts():
    """Else kernels that drop them pass; a symmetric matrix becomes a Hermitian one."""
    inputs = recipe(
        TorchRow(OPS["linalg_slogdet"]), parse("linalg_slogdet/functional/s0/complex64"), 0
    )
    matrix = inputs.slots[0].array
    assert matrix.imag.any()
    assert np.array_equal(matrix, matrix.conj().T)


def test_references_in_half_are_computed_where_torchs_cpu_has_no_half():
    image = torch.ones(1, 1, 2, 2, 2, dtype=torch.float16)
    case = parse("avg_pool3d/functional/s0/float16")
    result, _ = laws.run(TorchRow(OPS["avg_pool3d"]), case, "cpu", 0)
    assert result.verdict == "PASS", result.reason
    with pytest.raises(NotImplementedError, match=r"avg_pool3d_out_frame.*Half"):
        torch.nn.functional.avg_pool3d(image, 2)
    assert "float16" in takes(OPS["avg_pool3d"], ("float16", "float32"))
    assert "bool" not in takes(OPS["mm"], ("bool", "float32"))
