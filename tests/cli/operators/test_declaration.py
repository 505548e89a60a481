"""A declaration refuses nonsense, and says of every parameter of its header what becomes of it."""

from __future__ import annotations

from collections import ChainMap

import pytest
from mindtorch_npu.conformance.operators import declaration, rows
from mindtorch_npu.conformance.operators.declaration import FAMILIES
from mindtorch_npu.conformance.operators.row import SPECS, Spec, SpecError
from mindtorch_npu.conformance.operators.rows._ignored import ANYWHERE, REQUESTED
from mindtorch_npu.conformance.operators.spec import const, spec, t, take

from aclnn_bindings.interface import catalog

assert rows
EACH = {row.name: row for row in SPECS.values()}
# Parameters of headers that no reference takes and nothing explains; the number may only fall.
MOST_UNCOVERED = 0
# Those of references that have one value in all samples and neighbours; it may only fall.
MOST_CONSTANT = 0
# An operator that draws is held against its distribution, not against a formula.
DRAWN = frozenset(("seed", "offset", "seedTensor", "offsetTensor"))


def headers():
    """Per row the parameters of its operators' newest headers, by the row's names."""
    newest = ChainMap(*(catalog.load(v).ops for v in reversed(catalog.versions())))
    params = {name: set() for name in EACH}
    for name, row in SPECS.items():
        if name in newest:
            params[row.name] |= {row.renamed.get(p.name, p.name) for p in newest[name].params}
    return params


def unexplained(row, params):
    words = {word for rule in row.outs.values() for word in rule.split("|")}
    known = set(row.parameters()) | set(row.outs) | words | set(row.ignored) | set(ANYWHERE)
    if row.draws is not None:
        known |= DRAWN | {name for sample in row.samples() for name in sample.kwargs}
    return params - known


def test_every_parameter_of_a_header_is_taken_or_ignored_or_uncovered():
    for name, params in headers().items():
        assert unexplained(EACH[name], params) == set(EACH[name].uncovered), name


def test_what_no_reference_takes_grows_fewer():
    assert sum(len(row.uncovered) for row in EACH.values()) <= MOST_UNCOVERED
    assert sum(len(row.constant) for row in EACH.values()) <= MOST_CONSTANT


def test_a_flag_that_is_ignored_as_requested_is_set_by_every_sample():
    requested = [(row, p) for row in EACH.values() for p, why in row.ignored.items()
                 if why == REQUESTED]  # fmt: skip
    assert requested
    for row, param in requested:
        assert {s.kwargs[param] for s in row.samples()} == {True}, (row.name, param)


@pytest.mark.parametrize("name", EACH)
def test_a_row_agrees_with_the_headers_of_the_catalogs(name):
    assert not list(declaration.problems(EACH[name], EACH[name].samples()))


def test_every_family_is_a_module_or_folder_of_rows():
    assert {row.family for row in EACH.values()} <= FAMILIES


def reference(x, gamma, epsilon):
    return x


def declared(outs="yOut:x", function=reference, names="aclnnNothing", **fields):
    base = {"source": "a paper of 2019", "samples": [take(x=t(3), gamma=t(3), epsilon=0.1)]}
    try:
        spec(names, outs, **{**base, **fields})(function)
        return SPECS[names.split()[0]]
    finally:
        SPECS.pop(names.split()[0], None)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tolerence": "exact"}, "no field 'tolerence'; near: tolerance"),
        ({"tolerance": "exactly"}, "no class of tolerance 'exactly'"),
        ({"dtypes": ("float23",)}, "dtypes: no dtype 'float23'; near: float32"),
        ({"casts": {"x": {"float16": "flaot32"}}}, "casts of x: no dtype 'flaot32'"),
        ({"formats": {"x": "NCWH"}}, "formats of x: no format 'NCWH'"),
        ({"rule": {"norm": 2.0}}, "without a reason"),
        ({"rule": {"nrom": 2.0, "reason": "r"}}, "nrom"),
        ({"rule": "resampeld"}, "resampeld"),
        ({"nearest": lambda values: values}, "nearest: expected a function of two arguments"),
        ({"draws": lambda a, b, c: a, "tolerance": "random"}, "draws: expected a function of two"),
        ({"draws": lambda a, b: a}, "tolerance 'random'"),
        ({"slack": 0.5}, "expected steps=True"),
        ({"steps": True, "nearest": lambda a, b: a}, "drop one"),
        ({"outs": "yOut"}, "result 'yOut': expected one 'name:dtype' each"),
        ({"outs": ""}, "no results"),
        ({"ignored": {"gamma": "reserved"}}, "ignored: the reference takes gamma"),
        ({"ignored": {"mode": ""}}, "ignored: mode has no reason"),
        ({"ignored": {"mode": "one"}, "uncovered": "mode"}, "both ignored and uncovered"),
        ({"constant": "gama"}, "constant: the reference takes no gama; near: gamma"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-",
)
def test_a_declaration_refuses_what_contradicts_itself(fields, message):
    with pytest.raises(SpecError, match=r"^aclnnNothing: ") as error:
        declared(**fields)
    assert message in str(error.value)


def test_a_family_that_does_not_exist_is_refused():
    row = declared()
    package = declaration.__package__
    poool = Spec("aclnnNothing", f"{package}.rows.poool", row.reference, row.outs, row.samples,
                 row.tolerance, row.source)  # fmt: skip
    with pytest.raises(SpecError, match="no family 'poool'; near: pooling"):
        declaration.fields(poool)


def found(row):
    """What the headers say against a row of aclnnRmsNorm."""
    own = Spec("aclnnRmsNorm", "custom", row.reference, row.outs, row.samples, row.tolerance,
               row.source, renamed=row.renamed, formats=row.formats, ignored=row.ignored,
               uncovered=row.uncovered)  # fmt: skip
    return list(declaration.problems(own, list(own.samples())))


OUTS = "yOut:x rstdOut:float32"


def misspelt(x, gama, epsilon):
    return x, x


def optional(x, gamma, epsilon, epsilom=0.0):
    return x, x


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"function": misspelt}, "the reference takes gama: the header has no such parameter; "
         "near: gamma"),
        ({"function": optional}, "the reference takes epsilom"),
        ({"outs": "yout:x rstdOut:float32"}, "result yout: aclnnRmsNorm has no such parameter; "
         "near: yOut"),
        ({"outs": "yOut:floot32 rstdOut:float32"}, "floot32 is no dtype and no parameter; "
         "near: float32"),
        ({"samples": [take(x=t(3), gamma=t(3), epsilon=0.1, padddding=1)]},
         "a sample gives padddding"),
        ({"formats": {"gama": "ND"}}, "formats: the header has no parameter gama; near: gamma"),
        ({"ignored": {"modes": "one value"}}, "ignored: the header has no parameter modes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-",
)  # fmt: skip
def test_a_row_refuses_what_no_header_has(fields, message):
    assert any(message in problem for problem in found(declared(**{"outs": OUTS, **fields})))


def test_a_right_row_has_no_problem():
    assert not found(declared(OUTS, lambda x, gamma, epsilon: (x, x)))


def test_a_row_for_an_operator_that_no_cann_declares_is_refused():
    problems = list(declaration.problems(declared(names="aclnnRmsNrom"), []))
    assert problems == ["no CANN of the catalogs declares aclnnRmsNrom; near: aclnnRmsNorm"]


def test_an_operator_is_checked_when_it_is_bound():
    row = declared(OUTS, misspelt, "aclnnNothing")
    sample = take(x=t(3), gamma=const([1], "float32"), epsilon=0.1)
    with pytest.raises(SpecError, match="no CANN of the catalogs declares aclnnNothing"):
        declaration.bind(row, ["x", "gamma", "epsilon", "yOut", "rstdOut"], [sample])
    declaration.bind(row, ["x", "gama", "gamma", "epsilon", "yOut", "rstdOut"], [sample])
