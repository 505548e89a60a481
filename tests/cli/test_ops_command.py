"""`ops` lists every row and tells all about one."""

import json

import pytest
from mindtorch_npu import exits, main

from aclnn_bindings.install.library import bundled_simulator
from mindtorch.ops import OPS


def leave(*words):
    with pytest.raises(SystemExit) as ended:
        main.main(list(words))
    return ended.value.code


def test_every_row_is_listed(capsys):
    assert leave("ops", "--json") == exits.OK
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert set(rows) == set(OPS)
    assert rows["matmul"]["aclnn"] == ["aclnnMatmul"]
    assert all(row["reason"] and row["source"] for row in rows.values())


def test_family_restricts_the_list(capsys):
    assert leave("ops", "--family", "matrix") == exits.OK
    shown = capsys.readouterr().out
    assert "  matmul " in shown
    assert "  relu " not in shown


@pytest.mark.skipif(bundled_simulator() is None, reason="the simulator is not built")
def test_one_op_shows_schema_rule_and_header(capsys, monkeypatch):
    monkeypatch.setenv("MINDTORCH_CANN_HOME", str(bundled_simulator()))
    assert leave("ops", "matmul") == exits.OK
    shown = capsys.readouterr().out
    for text in ("matmul(Tensor self, Tensor other) -> Tensor", "ratio: ", "LAPACK", "accumulated",
                 "aclnnMatmulGetWorkspaceSize(", "const aclTensor *self",
                 "aclnn_matmul.h"):  # fmt: skip
        assert text in shown, text


def test_aclnn_name_finds_its_op(capsys):
    assert leave("ops", "aclnnMatmul") == exits.OK
    assert "matmul(Tensor self" in capsys.readouterr().out


def test_unknown_name_is_a_usage_error_with_neighbours(capsys):
    assert leave("ops", "matmull") == exits.USAGE
    assert "did you mean matmul" in capsys.readouterr().err


def test_families_are_those_of_check(capsys):
    assert leave("ops", "--family", "rotary") == exits.OK
    assert "aclnnApplyRotaryPosEmb" in capsys.readouterr().out
    for command in ("ops", "check"):
        assert leave(command, "--family", "pointwize") == exits.USAGE
        assert "no such family; did you mean 'pointwise'?" in capsys.readouterr().err


def test_names_are_completed():
    from mindtorch_npu import op_names

    assert "matmul" in [i.value for i in op_names.complete(None, None, "mat")]
    assert "aclnnAdd" in [i.value for i in op_names.complete(None, None, "aclnnAd")]
