"""Calling operators and functions by name: binding, checking, values, results, errors."""

import numpy as np
import pytest
from stub_acl import Stub

from aclnn_bindings.call.specs import ScalarSpec, TensorSpec
from aclnn_bindings.errors import (
    ArgumentError,
    ClosedHandleError,
    MissingSymbolError,
    UnsupportedSignatureError,
)
from aclnn_bindings.runtime.status import AclError


def test_add_by_keyword_writes_its_output(stub: Stub) -> None:
    cann = stub.cann
    a, b = cann.tensor(np.full(4, 2.0, np.float32)), cann.tensor(np.full(4, 3.0, np.float32))
    out = cann.empty((4,))
    assert cann.ops.aclnnAdd(self=a, other=b, alpha=2.0, out=out) is None
    assert out.numpy().tolist() == [8.0, 9.0, 10.0, 11.0]
    assert stub.descriptors() == {"tensor": 0, "list": 0, "executor": 0}


def test_positions_and_keywords_mean_the_same(stub: Stub) -> None:
    cann = stub.cann
    a, out = cann.tensor(np.ones(2, np.float32)), cann.empty((2,))
    cann.ops.aclnnAdd(a, a, 1.0, out)
    first = out.numpy()
    cann.ops.aclnnAdd(a, a, out=out, alpha=1.0)
    assert (out.numpy() == first).all()


def test_a_view_is_passed_as_base_and_offset(stub: Stub) -> None:
    cann = stub.cann
    a = cann.tensor(np.arange(8, dtype=np.float32))
    tail = a.view((4,), (1,), offset=4)
    out = cann.empty((4,))
    cann.ops.aclnnAdd(tail, tail, 0.0, out)
    assert out.numpy()[0] == 4.0
    assert tail.address == a.address


def test_every_kind_of_argument_arrives(stub: Stub) -> None:
    cann = stub.cann
    tensors = [cann.tensor(np.full(1, value, np.float32)) for value in (5.0, 6.0)]
    out = cann.empty((20,))
    cann.ops.aclnnStubKinds(
        self=tensors[0],
        tensors=tensors,
        scalars=[1, 2.0, True],
        ints=[3, -4],
        bools=[False, True],
        floats=[0.5],
        text="hello",
        flag=True,
        i8=-8,
        i32=-32,
        i64=-64,
        u32=32,
        u64=64,
        f=1.25,
        d=-2.5,
        dtype="FLOAT16",
        out=out,
    )
    expected = [5, 2, 6, 3, 2, -4, 1, 0.5, 5, 1, -8, -32, -64, 32, 64, 1.25, -2.5, 1, 0]
    assert out.numpy()[:19].tolist() == expected
    assert stub.descriptors() == {"tensor": 0, "list": 1, "executor": 0}, "the plan keeps scalars"


def test_a_list_of_outputs_is_written_and_its_members_released_once(stub: Stub) -> None:
    cann = stub.cann
    a = cann.tensor(np.full(1, 7.0, np.float32))
    parts = [cann.empty((1,)) for _ in range(3)]
    cann.ops.aclnnStubSplit(self=a, out=parts)
    assert [part.numpy()[0] for part in parts] == [7.0, 8.0, 9.0]
    assert stub.live("tensor") == 0
    assert stub.live("list") == 0


def test_host_outputs_and_extra_second_phase_parameters(stub: Stub) -> None:
    cann = stub.cann
    a = cann.tensor(np.zeros((2, 3), np.float32))
    assert cann.ops.aclnnStubOdd(self=a, scale=4.0) == (1, 6)
    assert a.numpy()[0, 0] == 4.0


def test_host_outputs_may_be_given_as_arrays(stub: Stub) -> None:
    cann = stub.cann
    a = cann.tensor(np.zeros((2, 3), np.float32))
    found, count = np.zeros(1, np.bool_), np.zeros(1, np.int64)
    assert cann.ops.aclnnStubOdd(self=a, any=found, count=count, scale=4.0) is None
    assert (found[0], count[0]) == (True, 6)


def test_an_array_that_the_operator_writes_is_made_anew_for_each_call(stub: Stub) -> None:
    cann = stub.cann
    out = cann.empty((1,))
    for _ in range(2):
        cann.ops.aclnnStubWrites(out=out, array=[5])
        assert out.numpy()[0] == 5.0
    assert stub.live("array") == 0


def test_missing_and_unknown_arguments_are_named_with_what_is_expected(stub: Stub) -> None:
    with pytest.raises(ArgumentError, match=r"missing alpha, out; no parameter named beta.*self"):
        stub.cann.ops.aclnnAdd(self=None, other=None, beta=1)


def test_an_argument_given_twice_is_refused(stub: Stub) -> None:
    with pytest.raises(ArgumentError, match="self given by position and by name"):
        stub.cann.ops.aclnnAdd(None, self=None, other=None, alpha=None, out=None)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("i8", 128, r"i8: 128 is out of range of int8_t \(-128 to 127\)"),
        ("u32", -1, "u32: -1 is out of range"),
        ("u64", 1 << 64, "u64: .* out of range"),
        ("i64", 1.5, "i64: expected an integer"),
        ("flag", 2, "flag: expected a bool, got 2"),
        ("f", 1e300, "f: too large for float"),
        ("d", "x", "d: expected a number"),
        ("text", "a\0b", "NUL"),
        ("text", 3, "text: expected a string"),
        ("dtype", "FLOAT17", "dtype: 'FLOAT17' is no member of aclDataType"),
        ("ints", [1, "x"], "ints: expected an integer"),
        ("ints", 3, "ints: expected a sequence of ints"),
        ("tensors", [1], "tensors: expected a device tensor"),
        ("self", 3.0, "self: expected a device tensor"),
        ("scalars", "ab", "scalars: expected a sequence"),
    ],
)
def test_a_wrong_value_is_refused_before_any_call(
    stub: Stub, name: str, value: object, text: str
) -> None:
    good = {
        "self": TensorSpec.of((1,)), "tensors": [], "scalars": [], "ints": [], "bools": [],
        "floats": [], "text": "", "flag": False, "i8": 0, "i32": 0, "i64": 0, "u32": 0, "u64": 0,
        "f": 0, "d": 0, "dtype": 0, "out": TensorSpec.of((1,)),
    }  # fmt: skip
    with pytest.raises(ArgumentError, match=text) as caught:
        stub.cann.ops.aclnnStubKinds(**{**good, name: value})
    assert str(caught.value).startswith("aclnnStubKinds: ")
    assert stub.get("launches") == 0
    assert not stub.cann.runtime.started


def test_a_refused_phase_one_says_everything(stub: Stub) -> None:
    cann = stub.cann
    a, out = cann.tensor(np.ones((2, 3), np.float32)), cann.empty((2, 3))
    stub.set("fail_one", 161002)
    with pytest.raises(AclError) as caught:
        cann.ops.aclnnAdd(a, a, 1.0, out)
    error = caught.value
    assert (error.call, error.phase, error.code) == ("aclnnAddGetWorkspaceSize", 1, 161002)
    assert (error.op, error.name) == ("aclnnAdd", "ACLNN_ERR_PARAM_INVALID")
    assert "told to refuse" in error.message
    assert error.shapes == ((2, 3), (2, 3), (2, 3))
    assert error.dtypes == ("FLOAT", "FLOAT", "FLOAT")
    assert error.remedy
    assert stub.descriptors() == {"tensor": 0, "list": 0, "executor": 0}


def test_a_failed_phase_two_says_so(stub: Stub) -> None:
    cann = stub.cann
    a = cann.tensor(np.ones(2, np.float32))
    stub.set("fail_two", 361001)
    with pytest.raises(AclError) as caught:
        cann.ops.aclnnAdd(a, a, 1.0, a)
    assert (caught.value.call, caught.value.phase, caught.value.code) == ("aclnnAdd", 2, 361001)
    assert stub.descriptors() == {"tensor": 0, "list": 0, "executor": 0}


def test_an_undeclared_operator_names_near_ones(stub: Stub) -> None:
    with pytest.raises(MissingSymbolError, match=r"aclnnAd: no operator.*near: .*aclnnAdd"):
        stub.cann.ops.aclnnAd  # noqa: B018


def test_a_symbol_that_no_library_exports_names_the_libraries(stub: Stub) -> None:
    with pytest.raises(MissingSymbolError, match=r"aclnnStubMissing.*not exported by libascendcl"):
        stub.cann.op("aclnnStubMissing")
    assert not stub.cann.has_op("aclnnStubMissing")
    assert stub.cann.has_op("aclnnAdd")


def test_a_struct_by_value_is_refused_by_name(stub: Stub) -> None:
    with pytest.raises(UnsupportedSignatureError, match="grid is dim3"):
        stub.cann.op("aclnnStubStruct")


def test_functions_return_values_text_and_nothing(stub: Stub) -> None:
    functions = stub.cann.functions
    assert functions.aclrtGetSocName() == "Stub910"
    assert functions.stubHalf(3.0) == 1.5
    assert functions.stubMix(a=-1, b=0.5, c=10, d=0.25, e=255) == 264.75
    assert functions.stubNegative() == -3
    assert functions.stubNothing() is None


def test_a_helper_with_one_phase_takes_values_and_returns_its_output(stub: Stub) -> None:
    assert stub.cann.functions.aclnnStubWeightSize(shape=[2, 3, 4]) == 24
    assert stub.live("array") == 0


def test_a_status_from_a_function_raises(stub: Stub) -> None:
    with pytest.raises(AclError, match="EZ1001: refused") as caught:
        stub.cann.functions.aclnnStubRefuse(161001)
    assert caught.value.name == "ACLNN_ERR_PARAM_NULLPTR"


def test_scalars_compare_by_their_bytes() -> None:
    assert ScalarSpec(0.0, "FLOAT") != ScalarSpec(-0.0, "FLOAT")
    assert ScalarSpec(float("nan")) == ScalarSpec(float("nan"))
    assert ScalarSpec(1) != ScalarSpec(True)
    assert ScalarSpec(1, "FLOAT") == ScalarSpec(1.0, "FLOAT")


def test_scalars_encode_half_bfloat16_and_complex() -> None:
    assert ScalarSpec(1.0, "FLOAT16").data == b"\x00\x3c"
    assert ScalarSpec(1.0, "BFLOAT16").data == b"\x80\x3f"
    assert ScalarSpec(3.3895e38, "BFLOAT16").data == b"\x7f\x7f"
    assert len(ScalarSpec(1 + 2j).data) == 16
    with pytest.raises(ArgumentError, match="300"):
        ScalarSpec(300, "INT8")
    with pytest.raises(ArgumentError, match="INT64"):
        ScalarSpec(1.5, "INT64")


def test_a_view_outside_its_storage_is_refused(stub: Stub) -> None:
    with pytest.raises(ArgumentError, match="reaches element 9 of a storage of 8"):
        stub.cann.tensor(np.zeros(8, np.float32)).view((5,), (2,), offset=1)
    with pytest.raises(ArgumentError, match="one stride per dimension"):
        TensorSpec((2, 3), (1,)).check("self")


def test_the_same_metadata_is_planned_once(stub: Stub) -> None:
    cann = stub.cann
    a = cann.tensor(np.ones(2, np.float32))
    for value in (1.0, 2.0, 1.0):
        cann.ops.aclnnAdd(a, a, value, a)
    assert len(cann.plans) == 2


def test_plans_of_ever_changing_scalars_are_bounded(stub: Stub) -> None:
    cann = stub.cann
    cann.plans.limit = 8
    a = cann.tensor(np.ones(2, np.float32))
    for value in range(50):
        cann.ops.aclnnAdd(a, a, float(value), a)
    assert len(cann.plans) == 8
    assert stub.live("scalar") == 8


def test_a_repeated_call_skips_only_the_checks(stub: Stub) -> None:
    cann = stub.cann
    a, b = (cann.tensor(np.full(4, value, np.float32)) for value in (2.0, 3.0))
    out, other = cann.empty((4,)), cann.empty((4,))
    for left, alpha, target in [
        (a, 2.0, out), (a, 2.0, out), (b, 2.0, out), (a, 1.0, out), (a, 2.0, other), (a, 2.0, out),
    ]:  # fmt: skip
        cann.ops.aclnnAdd(self=left, other=b, alpha=alpha, out=target)
        first = (2.0 if left is a else 3.0) + 3.0 * alpha
        assert target.numpy().tolist() == [first + k for k in range(4)], (alpha, target)
    with pytest.raises(ArgumentError, match="alpha"):
        cann.ops.aclnnAdd(self=a, other=b, alpha="2.0", out=out)


def test_equal_numbers_of_other_types_or_signs_have_plans_of_their_own(stub: Stub) -> None:
    a = stub.cann.tensor(np.ones(2, np.float32))
    before = len(stub.cann.plans)
    for alpha in (0.0, -0.0, 0, False, 1.0, 1, True) * 2:
        stub.cann.ops.aclnnAdd(a, a, alpha, a)
    assert len(stub.cann.plans) == before + 7


def test_views_that_come_and_go_are_never_mistaken_for_each_other(stub: Stub) -> None:
    cann = stub.cann
    base, out = cann.tensor(np.arange(64, dtype=np.float32)), cann.empty((1,))
    for offset in range(64):
        for _ in range(2):
            cann.ops.aclnnAdd(base.view((1,), (1,), offset), out, 0.0, out)
            assert out.numpy()[0] == offset


def test_a_repeated_call_refuses_what_was_closed_meanwhile(stub: Stub) -> None:
    cann = stub.cann
    a, out = cann.tensor(np.ones(2, np.float32)), cann.empty((2,))
    for _ in range(2):
        cann.ops.aclnnAdd(a, a, 1.0, out)
    a.close()
    with pytest.raises(ClosedHandleError, match="buffer of 8 bytes"):
        cann.ops.aclnnAdd(a, a, 1.0, out)
    b = cann.tensor(np.ones(2, np.float32))
    cann.close()
    with pytest.raises(ClosedHandleError, match="buffer of 8 bytes"):
        cann.ops.aclnnAdd(b, b, 1.0, out)
    again = cann.tensor(np.ones(2, np.float32))
    cann.ops.aclnnAdd(again, again, 1.0, again)
    assert again.numpy().tolist() == [2.0, 3.0]
