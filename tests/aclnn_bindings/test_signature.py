"""Operators are paired by name, and what is irregular about a pair is data."""

from aclnn_bindings.interface.headers import parse_text
from aclnn_bindings.interface.signature import Direction, Kind, OpSignature

PHASE_TWO = "void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream"
TAIL = "uint64_t *workspaceSize, aclOpExecutor **executor"


def op(first: str, second: str = PHASE_TWO, tail: str = TAIL) -> OpSignature:
    found = parse_text(
        f"aclnnStatus aclnnXGetWorkspaceSize({first}, {tail});\naclnnStatus aclnnX({second});"
    )
    return found.ops["aclnnX"]


def test_regular_pair_has_the_parameters_that_a_caller_gives() -> None:
    pair = op("const aclTensor *self, const aclScalar *alpha, aclTensor *out")
    assert [(p.name, p.kind) for p in pair.params] == [
        ("self", Kind.TENSOR), ("alpha", Kind.SCALAR), ("out", Kind.TENSOR),
    ]  # fmt: skip
    assert [p.direction for p in pair.params] == [Direction.IN, Direction.IN, Direction.OUT]
    assert (pair.irregular, pair.extra, pair.host_outputs) == ((), (), ())


def test_const_handles_and_sizes_in_phase_two_are_regular() -> None:
    second = PHASE_TWO.replace("uint64_t", "const uint64_t").replace("aclrtS", "const aclrtS")
    assert op("aclTensor *out", second).irregular == ()


def test_names_of_workspace_and_executor_do_not_matter() -> None:
    pair = op("aclTensor *out", tail="uint64_t *workspace_size, aclOpExecutor **opExecutor")
    assert pair.irregular == ()
    assert [p.name for p in pair.params] == ["out"]


def test_extra_phase_two_parameters_are_listed() -> None:
    pair = op("aclTensor *out", f"{PHASE_TWO}, int32_t device, bool *done")
    assert [p.name for p in pair.extra] == ["device", "done"]
    assert pair.irregular == ("phase 2 also takes device, done",)


def test_missing_stream_is_named() -> None:
    pair = op("aclTensor *out", PHASE_TWO.rpartition(",")[0])
    assert pair.irregular == ("phase 2 lacks aclrtStream",)


def test_other_order_in_phase_two_is_named() -> None:
    pair = op("aclTensor *out", "aclrtStream s, void *w, uint64_t n, aclOpExecutor *e")
    assert pair.irregular == ("phase 2 takes (aclrtStream, void *, uint64_t, aclOpExecutor *)",)


def test_host_outputs_of_any_pointer_type_are_represented() -> None:
    pair = op("const aclTensor *self, bool *equal, int64_t *count, aclTensor **made, void *p")
    assert [p.name for p in pair.host_outputs] == ["equal", "count", "made"]
    assert pair.irregular == ("host outputs equal, count, made",)
    assert len(pair.params) == 5


def test_phase_one_without_the_usual_tail_is_named() -> None:
    pair = op("aclTensor *out", tail="aclOpExecutor **executor, uint64_t *size")
    assert pair.irregular == ("phase 1 ends in (aclOpExecutor **, uint64_t *)",)
    assert [p.name for p in pair.params] == ["out"]


def test_unusual_return_types_are_named() -> None:
    found = parse_text(f"void aclnnXGetWorkspaceSize({TAIL});\nfloat aclnnX({PHASE_TWO});")
    assert found.ops["aclnnX"].irregular == (
        "aclnnXGetWorkspaceSize returns void", "aclnnX returns float",
    )  # fmt: skip


def test_lists_arrays_and_passed_by_value_types_have_kinds() -> None:
    pair = op(
        "const aclTensorList *a, aclScalarList *b, const aclIntArray *c, aclBoolArray *d, "
        "aclFloatArray *e, const char *f, char *g, aclDataType h, float i, double j, bool k, "
        "int8_t l, int m, int64_t n, uint32_t o, uint64_t p, size_t q, int16_t r, uint8_t s, "
        "uint16_t t, aclrtStream u, long v, unsigned char w"
    )
    assert [p.kind.name for p in pair.params] == [
        "TENSOR_LIST", "SCALAR_LIST", "INT_ARRAY", "BOOL_ARRAY", "FLOAT_ARRAY", "STRING", "STRING",
        "ENUM", "FLOAT", "DOUBLE", "BOOL", "INT8", "INT32", "INT64", "UINT32", "UINT64", "SIZE",
        "INT16", "UINT8", "UINT16", "HANDLE", "INT64", "UINT8",
    ]  # fmt: skip


def test_names_that_only_look_like_a_first_phase_make_no_operator() -> None:
    names = ("aclnnXGetMaxWorkspaceSize", "aclnnYGetWorkspaceSize")
    found = parse_text("".join(f"aclnnStatus {name}({TAIL});" for name in names))
    assert not found.ops
    assert set(found.functions) == set(names)


def test_constant_looks_into_enums() -> None:
    found = parse_text("enum E { A = 4 };\n#define B 5\n")
    assert (found.constant("A"), found.constant("B")) == (4, 5)
