"""Every code, result of HCCL and message id that can reach a person has a cause and a remedy."""

from __future__ import annotations

from aclnn_bindings.interface import catalog
from aclnn_bindings.runtime import message_ids, remedies, results, status


def test_every_code_has_a_cause_and_a_remedy() -> None:
    names = status.StatusCodes(catalog.load(catalog.versions()[-1])).names()
    assert set(names.values()) == set(remedies.codes())
    for advice in remedies.codes().values():
        assert advice.cause
        assert advice.fix


def test_every_result_of_hccl_has_a_name_and_a_remedy() -> None:
    declared = dict(catalog.load(catalog.versions()[-1]).enums["HcclResult"])
    listed = {name: number for number, (name, _) in results.collectives().items()}
    lacking = set(declared) - set(listed) - {"HCCL_SUCCESS", "HCCL_E_RESERVED"}
    assert lacking == set()
    assert all(listed[name] == declared[name] for name in listed if name in declared)


def test_an_id_that_is_not_listed_is_explained_by_its_module() -> None:
    known = message_ids.of_id("EG0042")
    assert known is not None
    assert "AOE" in known.advice.cause
    assert message_ids.of_id("EQ0001") is None


def test_the_dtype_that_is_advised_is_one_that_the_operator_takes() -> None:
    text = "self not implemented for {}, should be in dtype support list [{}] (Ascend910B2)"
    for refused, taken, dtype in (
        ("DT_INT64", "DT_FLOAT,DT_INT32", "INT32"), ("DT_INT64", "DT_FLOAT,DT_FLOAT16", "FLOAT"),
        ("DT_BOOL", "DT_FLOAT,DT_INT64", "INT64"), ("DT_BOOL", "DT_FLOAT16,DT_FLOAT", "FLOAT"),
    ):  # fmt: skip
        (rule,) = (rule for _, rule in remedies.of_message(text.format(refused, taken)))
        assert dtype in str(rule.advice).split(), rule
