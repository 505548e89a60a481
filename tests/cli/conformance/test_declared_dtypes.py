"""Which dtypes and calls a person's declaration has judged, and what a refusal of them means."""

import pytest
from mindtorch_npu.commands.check.causes import kinds
from mindtorch_npu.conformance.cases.case import parse
from mindtorch_npu.conformance.cases.claims import Claims
from mindtorch_npu.conformance.cases.declared import sample_of
from mindtorch_npu.conformance.cases.shapes import NotApplicableError
from mindtorch_npu.conformance.operators.own import OwnOperator
from mindtorch_npu.conformance.record.result import Result
from mindtorch_npu.conformance.run.cann_words import verdict_of
from mindtorch_npu.spec import Rule, flag, out, require, tensor
from mindtorch_npu.spec.row import row_of

from aclnn_bindings import AclParameterError
from aclnn_bindings.interface.headers import parse_text

HEADER = """
aclnnStatus aclnnTwiceGetWorkspaceSize(const aclTensor *x, bool flip, aclTensor *y,
                                       uint64_t *workspaceSize, aclOpExecutor **executor);
aclnnStatus aclnnTwice(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                       aclrtStream stream);
"""


def twice(x, flip):
    return -2 * x if flip else 2 * x


@pytest.fixture
def operator():
    declarations = parse_text(HEADER)
    params = {"x": tensor("B N", "f16 bf16 f32"), "flip": flag(), "y": out("x")}
    rule = Rule("rounded", "this file")
    row = row_of("aclnnTwice", rule, [require("B == N")], params, twice, __name__)
    return OwnOperator(declarations.ops["aclnnTwice"], row)


def test_every_declared_dtype_is_judged_though_the_header_lists_none(operator):
    assert set(operator.claims(None, "").dtypes) == {"float16", "bfloat16", "float32"}


def test_a_failure_is_not_shrunk_to_a_call_that_the_declaration_forbids(operator):
    with pytest.raises(NotApplicableError, match="B == N"):
        sample_of(operator.declaration, parse("aclnnTwice/functional/B=3/N=4"))
    sample = sample_of(operator.declaration, parse("aclnnTwice/functional/B=4/N=4/flip=True"))
    assert sample.kwargs["x"].shape == (4, 4)


def refusal(code):
    return AclParameterError("aclnnTwiceGetWorkspaceSize", code, op="aclnnTwice")


@pytest.mark.parametrize("code", [161001, 161002])
def test_a_refusal_of_what_was_assumed_narrows_and_of_what_was_declared_fails(code):
    for assumed, verdict in ((True, "UNSUPPORTED"), (False, "ERROR")):
        claims = Claims(("float32",), person=True, assumed=assumed)
        assert verdict_of(refusal(code), ("aclnnTwice",), "float32", claims)[0] == verdict


def test_a_failure_inside_fails_also_where_shapes_were_assumed():
    claims = Claims(("float32",), person=True, assumed=True)
    assert verdict_of(refusal(561002), ("aclnnTwice",), "float32", claims)[0] == "ERROR"


@pytest.mark.parametrize(
    ("factors", "sizes", "fits"),
    [
        ("", {}, "a formula, constant or sign: the plain case fails"),
        ("/flip=True", {}, "flip ignored, or wrong at this value"),
        ("/N=1025", {"N": [1024, 1025]}, "a block size: what lies beyond it is dropped"),
        ("/layout.x=stepped", {}, "strides or the offset of x ignored"),
        ("/*B=2x3", {}, "a branch that only these levels take"),
    ],
)
def test_kinds_of_defects_fit_the_levels_that_a_failure_needs(factors, sizes, fits):
    case = f"aclnnTwice/functional{factors}/dtype=float32"
    cause = {"case": case, "sizes": sizes, "failing": [], "passing": []}
    assert kinds(cause, Result(case, "aclnnTwice", "functional", "FAIL"))[0].startswith(fits)
