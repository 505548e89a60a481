"""Every rule has a reason and a source, and judging follows it."""

import numpy as np
import pytest
from mindtorch_npu.conformance.cases.case import parse
from mindtorch_npu.conformance.cases.values import magnified
from mindtorch_npu.conformance.operators import rows as spec_rows
from mindtorch_npu.conformance.operators.row import SPECS
from mindtorch_npu.judge import classes
from mindtorch_npu.judge.classes import requirement
from mindtorch_npu.judge.metrics import errors, measure
from mindtorch_npu.judge.precision import rounded
from mindtorch_npu.judge.tiers import judge

from mindtorch.ops import OPS


def judged(op, got, golden, dtype, scale=None):
    need = requirement(OPS[op].testing.tolerance, OPS[op].testing.rule)
    sized = measure(got, golden, dtype, scale, need.accumulator)
    return judge(need, dtype, sized, errors(got, golden, dtype))


def test_every_row_has_a_rule_with_reason_and_source():
    for op in OPS.values():
        need = requirement(op.testing.tolerance, op.testing.rule)
        assert need.reason, op.name
        assert need.source, op.name
        assert all(t in classes.MEANING for t in need.tiers), op.name


def test_every_rule_of_the_table_is_some_rows_rule():
    spec_rows.declare_all()
    rows = (*(op.testing for op in OPS.values()), *SPECS.values())
    rules = {row.rule for row in rows if isinstance(row.rule, str)}
    assert rules - {""} == set(classes.rules())


def test_a_rule_for_complex_inputs_leaves_real_ones_alone():
    assert requirement("exact", "modulus", "float32").tier == "T0"
    assert requirement("exact", "modulus", "complex64").tier == "T1"


def test_unknown_rule_is_refused():
    with pytest.raises(classes.ClassTableError, match="'nonsense' is none of"):
        requirement("exact", "nonsense")


def test_exact_rows_stay_exact_whatever_the_table_says():
    for op in OPS.values():
        if op.testing.tolerance == "exact":
            assert requirement(op.testing.tolerance, op.testing.rule).tier == "T0"


def test_exp_gets_the_opencl_bound():
    assert requirement("elementary", "exponential").ulp == (2, 3, 3)
    assert "OpenCL" in requirement("elementary", "exponential").source


def test_headline_is_the_strictest_tier_that_holds():
    golden = np.random.default_rng(0).uniform(1, 2, 100)
    got = rounded(golden, "float32")
    assert judged("exp", got, golden, "float32").headline == "T0"
    got[0] = np.nextafter(got[0], np.float32(9))
    assert judged("exp", got, golden, "float32").headline == "T1"


def test_weaker_tier_is_named_and_does_not_pass():
    golden = np.random.default_rng(0).uniform(1, 2, 100)
    got = rounded(golden * (1 + 3e-5), "float32")
    found = judged("exp", got, golden, "float32")
    assert not found.passed
    assert found.headline == "T3"
    assert "> 3 ULP" in found.failing()


def test_either_of_two_tiers_is_enough():
    golden = np.array([1e-6, 1.0])
    scale = np.array([1.0, 1.0])
    got = rounded(golden + np.array([3e-8, 0]), "float32")
    found = judged("add", got, golden, "float32", scale)
    assert found.passed
    assert found.headline == "ratio"


def test_integers_pass_only_when_equal():
    need = requirement("rounded", "sum")
    a, b = np.array([1, 2]), np.array([1, 3])
    assert judge(need, "int64", measure(a, a, "int64"), None).passed
    assert not judge(need, "int64", measure(a, b, "int64"), None).passed


def test_entry_without_reason_is_refused():
    with pytest.raises(classes.ClassTableError, match="no reason"):
        classes._complete("x", {"tier": "T0", "source": "s"})


def test_unknown_tier_is_refused():
    with pytest.raises(classes.ClassTableError, match="T9"):
        classes._complete("x", {"tier": "T9", "source": "s", "reason": "r"})


def test_a_mean_that_is_taken_off_leaves_the_units_of_the_inputs():
    around = "functional/dtype=float32/row=8/values={}"
    assert magnified(parse("native_layer_norm/" + around.format("offset"))) == 16
    assert magnified(parse("native_layer_norm/" + around.format("mixed"))) == 1
    assert magnified(parse("sum/" + around.format("offset"))) == 1
    for name, units in (("aclnnAddLayerNorm", 16), ("aclnnAddRmsNorm", 1)):
        assert magnified(parse(f"{name}/functional/dtype=float32/values=offset")) == units
