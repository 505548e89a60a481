"""Rows refuse rules that cannot be, and fit the headers of every operator that they name."""

from collections import ChainMap
from dataclasses import replace

import pytest
from mindtorch_npu.conformance.operators import rows, rules
from mindtorch_npu.conformance.operators.declared import bind
from mindtorch_npu.conformance.operators.row import SPECS
from mindtorch_npu.spec import ROWS, DeclarationError, Rule, out, tensor
from mindtorch_npu.spec.design import design
from mindtorch_npu.spec.gaps import alike
from mindtorch_npu.spec.row import row_of

from aclnn_bindings.interface import catalog

rows.declare_all()
NEWEST = ChainMap(*(catalog.load(v).ops for v in reversed(catalog.versions())))


def test_every_row_fits_the_headers_of_its_operators():
    for name in SPECS:
        row, known = ROWS[name], ROWS[name].renamed.get(name, {})
        assert name in NEWEST, name
        bind(row, name, [known.get(p.name, p.name) for p in NEWEST[name].params])


def test_every_format_is_of_a_parameter_of_its_module():
    params = {}
    for name, row in SPECS.items():
        params.setdefault(row.module, set()).update(p.name for p in NEWEST[name].params)
    for name, row in SPECS.items():
        assert {p.split()[-1] for p in row.formats} <= params[row.module], name


def test_a_parameter_with_one_value_has_a_reason():
    silent = {(name, p) for name, row in ROWS.items()
              for p, why in row.declaration.unvaried().items() if not why}  # fmt: skip
    assert not silent


def test_what_is_alike_in_every_call_has_a_reason():
    each = {id(row): row.declaration for row in ROWS.values()}.values()
    found = {d.name: alike(d, design(d, d.dtypes()).calls) for d in each}
    assert {name: same for name, same in found.items() if same} == {}


def test_every_family_is_a_module_or_folder_of_rows():
    assert {row.family for row in SPECS.values()} <= rules.FAMILIES


def row_with(rule, module="own"):
    return row_of("aclnnNothing", rule, (), {"x": tensor("N"), "y": out("x")}, lambda x: x, module)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tolerance": "exactly"}, "no class of tolerance 'exactly'"),
        ({"source": ""}, "no reason or no source"),
        ({"formats": {"x": "NCWH"}}, "formats of x: no format 'NCWH'; did you mean 'NCHW'?"),
        ({"numbers": {"norm": 2.0}}, "without a reason"),
        ({"numbers": {"nrom": 2.0, "reason": "r"}}, "nrom"),
        ({"numbers": "resampeld"}, "resampeld"),
        ({"nearest": lambda values: values}, "nearest: expected a function of two arguments"),
        ({"draws": lambda a, b, c: a, "tolerance": "random"}, "draws: expected a function of two"),
        ({"draws": lambda a, b: a}, "tolerance 'random'"),
        ({"slack": 0.5}, "expected steps=True"),
        ({"steps": True, "nearest": lambda a, b: a}, "drop one"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-",
)
def test_a_rule_refuses_what_contradicts_itself(fields, message):
    rule = replace(Rule("elementary", "a paper of 2019"), **fields)
    with pytest.raises(DeclarationError, match=r"^aclnnNothing: ") as error:
        rules.check(row_with(rule))
    assert message in str(error.value)


def test_a_family_that_does_not_exist_is_refused():
    row = row_with(Rule("elementary", "a paper of 2019"), f"{rows.__name__}.poool")
    with pytest.raises(DeclarationError, match="no family 'poool'; did you mean 'pooling'"):
        rules.check(row)
