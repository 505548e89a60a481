"""Facts that headers do not state: each has its reason and source, and each is needed."""

import pytest

from aclnn_bindings.interface import catalog, overrides
from aclnn_bindings.interface.headers import direction
from aclnn_bindings.interface.headers.raw import RawParam
from aclnn_bindings.interface.overrides import DIRECTION_ROWS, DIRECTIONS
from aclnn_bindings.interface.signature import WORKSPACE_SUFFIX, Direction, OpSignature


def rule(op: OpSignature) -> dict[str, Direction]:
    """Directions that the rules give for an operator without any doc comment."""
    params = op.workspace.params
    raw = [RawParam(p.type, p.name) for p in params]
    kinds = [p.kind for p in params]
    found = direction.directions(op.workspace.name, raw, kinds, {})
    return dict(zip((p.name for p in params), found, strict=True))


@pytest.mark.parametrize("row", DIRECTION_ROWS, ids=lambda row: row.ops[0])
def test_each_row_states_its_reason_and_source(row: overrides.DirectionRow) -> None:
    assert len(row.reason) > 20
    assert "document" in row.source


def test_each_override_names_an_operator_and_parameter_that_exist() -> None:
    known = [catalog.load(version) for version in catalog.versions()]
    for op, directions in DIRECTIONS.items():
        homes = [k.ops[op] for k in known if op in k.ops]
        assert homes, op
        for name in directions:
            assert any(name in [p.name for p in home.params] for home in homes), f"{op} {name}"


def test_each_row_changes_what_the_rules_say(monkeypatch: pytest.MonkeyPatch) -> None:
    known = catalog.load("2026-08")
    monkeypatch.setattr(direction, "DIRECTIONS", {})
    for row in DIRECTION_ROWS:
        changed = [
            (op, name)
            for op in row.ops
            if op in known.ops
            for name, wanted in row.directions.items()
            if rule(known.ops[op]).get(name) is not wanted
        ]
        assert changed, row.ops


def test_override_reaches_the_parsed_signature() -> None:
    from aclnn_bindings.interface.headers import parse_text

    found = parse_text(
        f"aclnnStatus aclnnBatchNormElemt{WORKSPACE_SUFFIX}(const aclTensor *input, "
        "aclTensor *mean, aclTensor *invstd, aclTensor *output, uint64_t *n, aclOpExecutor **e);"
    )
    params = found.functions[f"aclnnBatchNormElemt{WORKSPACE_SUFFIX}"].params
    assert [p.direction.name for p in params] == ["IN", "IN", "IN", "OUT", "OUT", "OUT"]
