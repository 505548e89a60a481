"""Status codes become exceptions with a symbol, the call's facts and a remedy."""

import pickle

import pytest

from aclnn_bindings.interface import catalog
from aclnn_bindings.interface.signature import Declarations
from aclnn_bindings.runtime import remedies, status as errors


@pytest.fixture
def codes() -> errors.StatusCodes:
    return errors.StatusCodes(catalog.load("8.1.RC1"))


def test_an_operators_failure_names_phase_code_symbol_and_tensors(
    codes: errors.StatusCodes,
) -> None:
    error = codes.error(
        "aclnnAddGetWorkspaceSize",
        161002,
        message="EZ1001: Shape of out should be [2,3], but current is [3,2].",
        shapes=[(2, 3), (3, 2)],
        dtypes=["FLOAT", "FLOAT16"],
    )
    assert (error.phase, error.op, error.name) == (1, "aclnnAdd", "ACLNN_ERR_PARAM_INVALID")
    text = str(error)
    assert text.startswith("aclnnAddGetWorkspaceSize failed with 161002")
    assert "(ACLNN_ERR_PARAM_INVALID) in phase 1 of aclnnAdd" in text
    assert "given: FLOAT[2, 3], FLOAT16[3, 2]" in text
    assert "CANN says: EZ1001" in text
    assert "remedy: a tensor's shape is not what the operator computes" in text


def test_phase_two_is_the_name_without_the_suffix(codes: errors.StatusCodes) -> None:
    assert codes.error("aclnnAdd", 361001).phase == 2
    assert codes.error("aclrtMalloc", 207001).phase is None
    assert codes.error("aclnnInit", 500000).phase is None


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (161001, errors.AclParameterError),
        (107002, errors.AclParameterError),
        (207001, errors.AclOutOfMemoryError),
        (200000, errors.AclOutOfMemoryError),
        (207000, errors.AclUnsupportedError),
        (561003, errors.AclUnsupportedError),
        (507015, errors.AclDeviceError),
        (561103, errors.AclError),
        (999, errors.AclError),
    ],
)
def test_the_class_of_a_code_follows_its_meaning(
    codes: errors.StatusCodes, code: int, kind: type[errors.AclError]
) -> None:
    assert type(codes.error("call", code)) is kind


def test_the_classes_are_also_the_builtin_kinds(codes: errors.StatusCodes) -> None:
    assert isinstance(codes.error("f", 161002), ValueError)
    assert isinstance(codes.error("f", 207001), MemoryError)
    assert isinstance(codes.error("f", 207000), NotImplementedError)
    assert isinstance(codes.error("f", 561103), RuntimeError)


def test_numbers_come_from_the_install_and_only_then_from_the_catalog() -> None:
    moved = Declarations(constants={"ACLNN_ERR_PARAM_INVALID": 161999})
    codes = errors.StatusCodes(moved)
    assert codes.name(161999) == "ACLNN_ERR_PARAM_INVALID"
    assert codes.name(107002) == "ACL_ERROR_RT_CONTEXT_NULL"
    assert codes.names()[161999] == "ACLNN_ERR_PARAM_INVALID"


def test_an_unknown_code_says_so(codes: errors.StatusCodes) -> None:
    error = codes.error("aclrtMalloc", 123456)
    assert error.name == "unknown code 123456"
    assert error.remedy is None


def test_a_remedy_of_the_operator_beats_that_of_the_code() -> None:
    own = remedies.remedy_for("ACLNN_ERR_PARAM_INVALID", "aclnnMatmul")
    assert own is not None
    assert "cubeMathType" in own
    general = remedies.advise("ACLNN_ERR_PARAM_INVALID", "aclnnAdd")
    assert general == remedies.codes()["ACLNN_ERR_PARAM_INVALID"]


def test_canns_message_beats_the_operators_remedy(codes: errors.StatusCodes) -> None:
    said = "The k-axis of the two inputs are different."
    error = codes.error("aclnnMatmulGetWorkspaceSize", 161002, message=said)
    assert error.remedy is not None
    assert "inner sizes" in error.remedy
    assert "use cubeMathType" not in error.remedy


def test_a_message_that_echoes_a_failure_is_no_remedy() -> None:
    echo = "When aclnnAddGetWorkspaceSize do success, ReleaseTo(executor) should be called"
    assert (
        remedies.advise("ACLNN_ERR_INNER", "aclnnAdd", echo) == remedies.codes()["ACLNN_ERR_INNER"]
    )


def test_every_remedy_is_for_a_code_that_a_catalog_declares() -> None:
    known = set(errors.StatusCodes(catalog.load("2026-08")).names().values())
    named = set(remedies.codes()) | {name for _, name in remedies.operators()}
    assert named <= known
    ops = catalog.load("2026-08").ops
    assert all(op in ops for op, _ in remedies.operators())


def test_an_error_survives_a_process_boundary(codes: errors.StatusCodes) -> None:
    error = codes.error("aclnnAdd", 361001, shapes=[(1,)], dtypes=["FLOAT"], message="m")
    back = pickle.loads(pickle.dumps(error))
    assert (type(back), str(back), back.shapes) == (type(error), str(error), ((1,),))
