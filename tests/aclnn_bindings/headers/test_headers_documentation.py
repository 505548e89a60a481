"""Directions, optional parameters and dtypes are read from comments in both languages."""

import json
from pathlib import Path

import pytest

from aclnn_bindings.interface import catalog
from aclnn_bindings.interface.headers import parse_text
from aclnn_bindings.interface.headers.direction import directions
from aclnn_bindings.interface.headers.doxygen import is_deprecated, read_doc
from aclnn_bindings.interface.headers.raw import RawParam
from aclnn_bindings.interface.signature import Direction, Kind, Param

TAIL = ", uint64_t *workspaceSize, aclOpExecutor **executor);"


def params(comment: str, text: str, name: str = "aclnnX") -> dict[str, Param]:
    found = parse_text(f"{comment}\naclnnStatus {name}GetWorkspaceSize({text}{TAIL}")
    return {p.name: p for p in found.functions[f"{name}GetWorkspaceSize"].params}


def test_chinese_comment_gives_dtypes_in_order() -> None:
    comment = (
        "/**\n * @param [in] self: npu\n * device侧的aclTensor，数据类型支持FLOAT16、FLOAT，"
        "DOUBLE、BFLOAT16(仅910B)。支持非连续的Tensor，格式支持ND。\n"
        " * @param [out] out: 数据类型bool\n */"
    )
    found = params(comment, "const aclTensor *self, aclTensor *out")
    assert found["self"].dtypes == ("FLOAT16", "FLOAT", "DOUBLE", "BFLOAT16")
    assert found["out"].dtypes == ("BOOL",)


def test_english_comment_gives_dtypes_and_usual_names_are_translated() -> None:
    comment = (
        "/**\n * @param self [in]  the tensor. Data type: fp16, bf16, float32 or ACL_INT8.\n"
        " * @param out [out] integral of INT types; see aclDataType\n * @return status INT64\n */"
    )
    found = params(comment, "const aclTensor *self, aclTensor *out")
    assert found["self"].dtypes == ("FLOAT16", "BFLOAT16", "FLOAT", "INT8")
    assert found["out"].dtypes == ()


def test_lower_case_words_count_only_where_a_data_type_is_stated() -> None:
    found = params("/** @param [in] dim: an int64 position, bool flag */", "int64_t dim")
    assert found["dim"].dtypes == ()


@pytest.mark.parametrize(
    ("mark", "wanted"),
    [("[in]", "IN"), ("[out]", "OUT"), ("[in,out]", "INOUT"), ("[in, out]", "INOUT"),
     ("[inout]", "INOUT"), ("[in|out]", "INOUT"), ("[in/out]", "INOUT"), ("", "OUT")],
)  # fmt: skip
def test_marks_decide_for_plain_pointers(mark: str, wanted: str) -> None:
    found = parse_text(f"/** @param {mark} p  the pointer */ aclError f(int32_t *p);")
    assert found.functions["f"].params[0].direction is Direction[wanted]


def test_mark_in_does_not_turn_a_tensor_that_is_not_const_into_an_input() -> None:
    found = params("/** @param [in] out: FLOAT */", "const aclTensor *self, aclTensor *out")
    assert found["out"].direction is Direction.OUT


@pytest.mark.parametrize("said", ["可选参数", "允许传入空指针", "optional", "can be nullptr"])
def test_optional_parameters_are_told_by_the_comment(said: str) -> None:
    comment = f"/**\n * @param [in] bias: {said}.\n * @param [in] x: required\n */"
    found = params(comment, "const aclTensor *bias, const aclTensor *x")
    assert (found["bias"].optional, found["x"].optional) == (True, False)


def test_optional_parameters_are_told_by_the_name() -> None:
    assert params("", "const aclTensor *biasOptional")["biasOptional"].optional


def test_listing_of_generated_headers_is_read() -> None:
    comment = (
        "/* funtion: aclnnXGetWorkspaceSize\n * parameters :\n * x : required\n"
        " * seqlen : optional\n"
        " * y : required\n * workspaceSize : size of workspace(output).\n */"
    )
    found = params(comment, "const aclTensor *x, const aclTensor *seqlen, const aclTensor *y")
    assert [found[n].optional for n in ("x", "seqlen", "y")] == [False, True, False]
    assert found["y"].direction is Direction.OUT


def test_comment_belongs_to_the_next_declaration_only() -> None:
    found = parse_text(
        "/** licence @param [in] a: 数据类型支持INT8 */\n#define X 1\n"
        "int f(int a);\n/** @param [in] a: 数据类型支持FLOAT */\nint g(int a);\nint h(int a);"
    )
    assert [found.functions[n].params[0].dtypes for n in "fgh"] == [("INT8",), ("FLOAT",), ()]


def test_in_place_operators_read_and_write_their_first_tensor() -> None:
    found = params("", "aclTensor *selfRef, const aclTensor *other", "aclnnInplaceAdd")
    assert found["selfRef"].direction is Direction.INOUT
    found = params("", "const aclTensor *self, const aclTensor *other", "aclnnInplaceAdd")
    assert found["self"].direction is Direction.INOUT
    assert found["other"].direction is Direction.IN


def test_operators_with_const_outputs_have_them_behind_their_attributes() -> None:
    found = params("", "const aclTensor *x, double eps, const aclTensor *y, const aclTensor *rstd")
    assert [found[n].direction.name for n in ("x", "y", "rstd")] == ["IN", "OUT", "OUT"]
    found = params("", "const aclTensor *gradOut, const aclTensor *gradIn")
    assert [found[n].direction.name for n in ("gradOut", "gradIn")] == ["IN", "OUT"]


def test_host_values_and_arrays_are_inputs() -> None:
    found = params("", "aclIntArray *dims, aclScalar *alpha, char *mode, aclTensor *out")
    assert [p.direction.name for p in found.values()] == ["IN", "IN", "IN", "OUT", "OUT", "OUT"]


def test_deprecation_is_told_in_both_languages() -> None:
    assert is_deprecated("/** @deprecated use V2 */")
    assert is_deprecated("/* 该接口即将废弃 */")
    assert not is_deprecated("/* plain */")


def test_rules_agree_with_the_documents_on_nearly_all_operators() -> None:
    path = Path(catalog.__file__).parents[1] / "catalogs" / "2026-08.json"
    assert path.is_file()
    known = catalog.load("2026-08")
    wrong = 0
    for op in known.ops.values():
        raw = [RawParam(p.type, p.name) for p in op.workspace.params]
        kinds = [p.kind for p in op.workspace.params]
        found = directions(op.workspace.name, raw, kinds, {})
        tensors = {Kind.TENSOR, Kind.TENSOR_LIST}
        wrong += any(
            (p.direction is Direction.IN) != (d is Direction.IN)
            for p, k, d in zip(op.workspace.params, kinds, found, strict=True)
            if k in tensors
        )
    assert wrong < 0.05 * len(known.ops), json.dumps(wrong)


def test_read_doc_of_junk_is_empty() -> None:
    assert read_doc("/* @param */ @param [ @param [in] 9") == {}
