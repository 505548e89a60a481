"""Neighbours of samples change one argument, are calls, and pass where kernels are right."""

from __future__ import annotations

import io
from collections import ChainMap

import pytest
from mindtorch_npu.conformance.cases import neighbours
from mindtorch_npu.conformance.cases.case import CaseNameError, parse
from mindtorch_npu.conformance.operators import rows
from mindtorch_npu.conformance.operators.neighbours import Search
from mindtorch_npu.conformance.operators.row import SPECS
from mindtorch_npu.conformance.operators.spec import t, take
from mindtorch_npu.conformance.run.worker import Worker
from mindtorch_npu.spec import ROWS

from aclnn_bindings.install.library import bundled_simulator
from aclnn_bindings.interface import catalog
from mindtorch.ops.samples import Arg

assert rows


def shapes(sample):
    return {k: v.shape for k, v in sample.kwargs.items() if hasattr(v, "shape")}


@pytest.mark.parametrize("value", [0.3, -1, True, None, (2, 3), (True, False), "BSND", 1e-05])
def test_a_value_reads_back(value):
    text = neighbours.text_of(value)
    assert " " not in text
    assert neighbours.changed(take(a=0), f"a={text}").kwargs["a"] == value


def test_a_size_changes_wherever_it_stands():
    sample = take(x=t(4, 32), y=t(32), headSize=32, mode=4, ends=(4, 32))
    other = neighbours.changed(sample, "32=1056")
    assert shapes(other) == {"x": (4, 1056), "y": (1056,)}
    assert (other.kwargs["headSize"], other.kwargs["ends"]) == (1056, (4, 1056))
    assert neighbours.changed(sample, "4=8").kwargs["mode"] == 4  # a mode, not a size


def test_an_argument_that_the_sample_has_not_is_named():
    with pytest.raises(CaseNameError, match="no argument 'eps'"):
        neighbours.changed(take(x=t(3)), "eps=0.3")


def test_every_stored_neighbour_is_named_and_changes_a_sample():
    for name in neighbours.stored():
        for case in neighbours.neighbours(name, "full"):
            assert parse(case.id) == case
            row = SPECS.get(name, SPECS.get(name.replace("aclnnInplace", "aclnn", 1)))
            assert row is not None, f"{name} has no row: look for neighbours again"
            if case.fill != "normal":
                continue  # other values, not another call
            key = case.detail.partition("=")[0]
            if key.isdigit():
                continue
            assert key in row.parameters(), f"{case.id}: look for neighbours again"


def headers():
    """Per row the parameters of its operators' newest headers, by the row's names."""
    newest = ChainMap(*(catalog.load(v).ops for v in reversed(catalog.versions())))
    params = {}
    for name, row in SPECS.items():
        own = newest[name].params if name in newest else ()
        params.setdefault(row.name, set()).update(row.renamed.get(p.name, p.name) for p in own)
    return params


def constant(row, params):
    """Arguments of a row's formula that have one value in all samples and neighbours.

    What a formula takes for other rows, and no header of this one has, is left out.
    """
    samples = [s for s in row.samples() if not s.error]
    changes = {c.detail.partition("=")[0] for name in (row.name, *row.names)
               for c in neighbours.neighbours(name, "full")}  # fmt: skip
    for name, default in row.parameters().items():
        values = [s.kwargs.get(name, default) for s in samples]
        texts = {neighbours.text_of(v) for v in values if not isinstance(v, Arg | list)}
        tensor = any(isinstance(v, Arg | list) for v in values)
        own = name in params or name.startswith("_") or not params
        if own and name not in changes and len(texts) == 1 and not tensor:
            yield name


def test_every_argument_of_a_formula_takes_a_second_value_or_is_named_constant():
    known = headers()
    sampled = {row.name: row for row in SPECS.values() if row.name not in ROWS}
    for row in sampled.values():
        assert set(constant(row, known[row.name])) == set(row.constant), row.name


def test_what_a_declared_row_never_varies_has_a_reason():
    silent = {(name, p) for name, row in ROWS.items()
              for p, why in row.declaration.unvaried().items() if not why}  # fmt: skip
    assert not silent
    assert len(ROWS) >= 6


@pytest.mark.skipif(bundled_simulator() is None, reason="simulator is not built")
def test_search_keeps_what_shows_and_leaves_out_what_is_refused():
    worker = Worker({"device": "npu:0", "home": None, "simulator": True}, io.StringIO())
    worker.hello()
    text = Search(worker, worker.subject("aclnnAddRmsNorm")).text()
    quick, _, full = text.partition("|")
    assert "s0/epsilon=0.3" in quick.split()  # one that shows
    assert "s0/16=1040" in quick.split()
    assert "s0/16=4112" in full.split()
    assert not any("gamma=null" in word for word in text.split())  # no call
