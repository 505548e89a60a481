"""Every operator of the catalogs of known CANN versions can be bound: kinds, roles, placement."""

from collections import Counter
from typing import Any

import pytest

from aclnn_bindings.call.marshal import bind, host_outputs, rule_of
from aclnn_bindings.call.plan import roles_of
from aclnn_bindings.call.specs import TensorSpec
from aclnn_bindings.errors import UnsupportedSignatureError
from aclnn_bindings.interface import catalog
from aclnn_bindings.interface.dtypes import DTYPES, enum_values
from aclnn_bindings.interface.signature import Declarations, Kind, Param

VERSIONS = catalog.versions()
SAMPLES = {
    Kind.TENSOR: TensorSpec.of((2, 3)),
    Kind.TENSOR_LIST: [TensorSpec.of((2,)), TensorSpec.of(())],
    Kind.SCALAR: 1.0,
    Kind.SCALAR_LIST: [1, 2.0],
    Kind.INT_ARRAY: [1, -2],
    Kind.BOOL_ARRAY: [True, False],
    Kind.FLOAT_ARRAY: [0.5],
    Kind.BOOL: True,
    Kind.FLOAT: 0.5,
    Kind.DOUBLE: 0.5,
    Kind.STRING: "ND",
}


def sample(param: Param, declared: Declarations) -> Any:
    if param.kind is Kind.ENUM:
        return next(iter(declared.enums[param.type.removeprefix("const ")]))
    return SAMPLES.get(param.kind, 1)


@pytest.fixture(scope="module", params=VERSIONS)
def declared(request: pytest.FixtureRequest) -> Declarations:
    return catalog.load(request.param)


def test_every_first_phase_takes_values_for_every_parameter(declared: Declarations) -> None:
    kinds: Counter[Kind] = Counter()
    for name, op in declared.ops.items():
        given = [sample(param, declared) for param in op.params]
        for param, value in zip(op.params, bind(name, op.params, given, {}), strict=True):
            argument = rule_of(param, declared.enums)(param, value, [])
            hash(argument)
            kinds[param.kind] += 1
    assert kinds.keys() >= SAMPLES.keys() | {
        Kind.ENUM,
        Kind.INT64,
        Kind.INT32,
        Kind.INT8,
        Kind.UINT64,
    }
    assert Kind.STRUCT not in kinds


def test_both_phases_have_all_their_roles_at_the_end(declared: Declarations) -> None:
    for op in declared.ops.values():
        count = len(op.workspace.params)
        assert sorted(roles_of(op.workspace, 1)) == [count - 2, count - 1], op.name
        assert sorted(roles_of(op.execute, 2)) == [0, 1, 2, 3], op.name


def test_null_is_taken_for_every_pointer(declared: Declarations) -> None:
    for op in declared.ops.values():
        for param in op.params:
            if "*" in param.type:
                assert not rule_of(param, declared.enums)(param, None, [])


def test_structs_by_value_are_refused_not_misplaced(declared: Declarations) -> None:
    found = [
        param
        for signature in declared.functions.values()
        for param in signature.params
        if param.kind in (Kind.STRUCT, Kind.VARARGS)
    ]
    for param in found:
        with pytest.raises(UnsupportedSignatureError):
            rule_of(param, declared.enums)(param, 1, [])


def test_every_dtype_of_the_headers_is_known_by_name(declared: Declarations) -> None:
    values = enum_values(declared, "aclDataType", "ACL_")
    unsized = {"DT_UNDEFINED", "STRING", "BF16", "FLOAT6_E3M2", "FLOAT6_E2M3", "HIFLOAT4"}
    assert values.keys() - unsized <= DTYPES.keys()
    assert values["BFLOAT16"] == values["BF16"]


def test_only_numbers_and_pointers_are_host_outputs(declared: Declarations) -> None:
    def hosts(name: str) -> frozenset[str]:
        return host_outputs(declared.functions[name].params, declared)

    assert hosts("aclrtMalloc") == {"devPtr"}
    assert hosts("aclrtGetMemInfo") == {"free", "total"}
    assert hosts("aclrtCreateStream") == {"stream"}
    assert hosts("aclmdlGetInputDims") == frozenset(), "a struct needs its own room"
    assert hosts("aclrtMemcpy") == frozenset()
