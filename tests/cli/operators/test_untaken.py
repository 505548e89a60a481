"""What a header has and no formula takes: a fault in its handling would pass."""

from __future__ import annotations

from pathlib import Path

import pytest
from mindtorch_npu.conformance.operators import rows
from mindtorch_npu.conformance.operators.idle import OWN, idle
from mindtorch_npu.conformance.operators.spec import SPECS
from mindtorch_npu.conformance.operators.untaken import by_row

import aclnn_bindings
from aclnn_bindings.install.library import bundled_simulator

assert rows
pytestmark = pytest.mark.skipif(bundled_simulator() is None, reason="simulator is not built")


@pytest.fixture(scope="module")
def declarations():
    return aclnn_bindings.open(None, simulator=True).declarations


def test_every_parameter_of_a_header_is_taken_or_explained(declarations):
    """Those of untaken.txt are left to do; the list may only shrink."""
    lines = Path(__file__).with_name("untaken.txt").read_text().splitlines()
    known = {line.split(":")[0]: line.split(":")[1].split() for line in lines if line[:1] != "#"}
    now = by_row(declarations)
    new = {row: [p for p in names if p not in known.get(row, ())] for row, names in now.items()}
    assert not {r: p for r, p in new.items() if p}, "let the reference take it and vary it"
    done = {row: [p for p in names if p not in now.get(row, ())] for row, names in known.items()}
    assert not {r: p for r, p in done.items() if p}, "they are taken: take them out of untaken.txt"


def test_what_changes_no_result_is_a_parameter_that_no_formula_takes(declarations):
    headers = {}
    for name, row in SPECS.items():
        if name in declarations.ops:
            own = {row.renamed.get(p.name, p.name) for p in declarations.ops[name].params}
            headers.setdefault(row.name, set()).update(own)
    for row, param in OWN:
        assert param in headers[row], f"{row} has no {param}"
        assert param not in SPECS[row].parameters(), f"the formula of {row} takes {param}"


def test_a_result_is_asked_for_by_every_sample_that_its_flag_is_excused_for():
    asked = [key for key in OWN if idle(*key).startswith("asks for a result")]
    assert asked
    for row, param in asked:
        assert {s.kwargs[param] for s in SPECS[row].samples()} == {True}, (row, param)
