"""Descriptors made one by one: owned, closed once, handed over to lists, usable in calls."""

import numpy as np
import pytest
from stub_acl import Stub

from aclnn_bindings.call.handles import (
    BoolArray,
    Descriptor,
    FloatArray,
    IntArray,
    Scalar,
    ScalarList,
    Tensor,
    TensorList,
)
from aclnn_bindings.call.specs import RawHandle, TensorSpec
from aclnn_bindings.errors import ArgumentError, ClosedHandleError


def make(stub: Stub, kind: str) -> tuple[Descriptor, str]:
    runtime = stub.cann.runtime
    spec = TensorSpec.of((2,))
    makers = {
        "tensor": lambda: Tensor(runtime, spec, 4096),
        "scalar": lambda: Scalar(runtime, 1.5),
        "ints": lambda: IntArray(runtime, [1, 2]),
        "bools": lambda: BoolArray(runtime, [True]),
        "floats": lambda: FloatArray(runtime, []),
        "tensor list": lambda: TensorList(runtime, [Tensor(runtime, spec, 0)]),
        "scalar list": lambda: ScalarList(runtime, [Scalar(runtime, 1), Scalar(runtime, True)]),
    }
    counted = {"ints": "array", "bools": "array", "floats": "array"}
    return makers[kind](), counted.get(kind, kind.split()[-1])


KINDS = ["tensor", "scalar", "ints", "bools", "floats", "tensor list", "scalar list"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_descriptor_is_released_exactly_once(stub: Stub, kind: str) -> None:
    made, counted = make(stub, kind)
    assert stub.live(counted) == 1
    with made:
        assert made.descriptor
    made.close()
    assert made.closed
    assert [stub.live(name) for name in ("tensor", "scalar", "array", "list")] == [0] * 4
    with pytest.raises(ClosedHandleError, match=f"{type(made).__name__}: it was closed"):
        made.descriptor  # noqa: B018


@pytest.mark.parametrize("kind", KINDS)
def test_a_dropped_descriptor_is_released(stub: Stub, kind: str) -> None:
    made, counted = make(stub, kind)
    del made
    assert stub.live(counted) == 0


def test_a_list_takes_its_members_over(stub: Stub) -> None:
    runtime = stub.cann.runtime
    tensor = Tensor(runtime, TensorSpec.of((2,)), 0)
    made = TensorList(runtime, [tensor])
    with pytest.raises(ClosedHandleError, match="given to a list"):
        tensor.descriptor  # noqa: B018
    tensor.close()
    assert stub.live("tensor") == 1
    made.close()
    assert stub.live("tensor") == 0


def test_a_descriptor_survives_neither_close_nor_restart(stub: Stub) -> None:
    made, _ = make(stub, "scalar")
    stub.cann.close()
    assert made.closed
    made.close()
    assert stub.live("scalar") == 0, "the runtime released it"


def test_operators_take_descriptors_of_ones_own(stub: Stub) -> None:
    cann = stub.cann
    a, out = cann.tensor(np.full(2, 3.0, np.float32)), cann.empty((2,))
    with (
        Tensor(cann.runtime, a.spec, a.address) as first,
        Scalar(cann.runtime, 2.0) as alpha,
    ):
        cann.ops.aclnnAdd(self=first, other=a, alpha=alpha, out=out)
        raw = RawHandle(first.descriptor)
        cann.ops.aclnnAdd(self=raw, other=a, alpha=alpha, out=out)
    assert out.numpy().tolist() == [9.0, 10.0]
    assert stub.live("tensor") == 0


def test_values_are_checked_before_a_descriptor_is_made(stub: Stub) -> None:
    runtime = stub.cann.runtime
    with pytest.raises(ArgumentError, match="out of range"):
        IntArray(runtime, [1 << 63])
    with pytest.raises(ArgumentError, match="too large for float"):
        FloatArray(runtime, [1e300])
    with pytest.raises(ArgumentError, match="storage of 1"):
        Tensor(runtime, TensorSpec((2,), (1,), 0, "FLOAT", 1), 0)
