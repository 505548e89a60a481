"""Designs: all pairs of levels meet, the plain case is first, cases name what they differ in."""

from itertools import combinations, product

import numpy as np
import pytest
from mindtorch_npu.conformance.cases.case import DTYPES, CaseNameError, parse
from mindtorch_npu.conformance.cases.design import design, levels_of, sample_of
from mindtorch_npu.conformance.cases.inputs import Input, tensors_of
from mindtorch_npu.conformance.cases.recipe import recipe
from mindtorch_npu.conformance.cases.spaces.space import DesignScope
from mindtorch_npu.conformance.cases.spaces.table import space_of
from mindtorch_npu.conformance.cases.supported_dtypes import takes
from mindtorch_npu.conformance.cases.values import designed, values
from mindtorch_npu.spec import arrays
from mindtorch_npu.spec.factors import covering, factor, lonely, plain

from mindtorch.ops import OPS
from mindtorch.ops.samples import Arg

SCOPE = DesignScope(("float32",))
FACTORS = [factor("row", *range(9)), factor("dtype", *"abcdef"), factor("layout", *"xyz"),
           factor("keepdim", "no", "yes")]  # fmt: skip


@pytest.mark.parametrize("strength", [2, 3])
def test_every_tuple_of_levels_meets(strength):
    small = [f if len(f.levels) <= 8 else factor(f.name, *f.levels[:8]) for f in FACTORS]
    found = list(covering(small, strength))
    for several in combinations(small, strength):
        met = {tuple(case[f.name] for f in several) for case in found}
        assert met == set(product(*(f.levels for f in several)))


def test_design_is_far_smaller_than_the_product_and_starts_plain():
    found = list(covering(FACTORS, 2))
    assert found[0] == plain(FACTORS)
    assert len(found) < 9 * 6 * 3 * 2 / 2


def test_same_design_on_every_call():
    assert list(covering(FACTORS, 2)) == list(covering(FACTORS, 2))


@pytest.mark.parametrize("name", ["add", "sum", "matmul", "gather", "cat", "convolution",
                                  "native_layer_norm", "avg_pool2d", "topk"])  # fmt: skip
def test_designed_cases_are_named_by_factors_and_make_a_call(name):
    cases = list(design(OPS[name], ("float32", "float16"), "quick"))
    assert len(cases) > 20
    for case in cases[::7]:
        assert parse(case.id) == case
        assert sample_of(OPS[name], case).args


def test_sizes_that_kernels_block_by_are_among_a_reductions_rows():
    rows = next(f for f in space_of("sum").factors(OPS["sum"], DesignScope(("float32",)))
                if f.name == "row")  # fmt: skip
    assert {"65", "513", "1025", "4097", "65537"} <= set(rows.levels)


def test_unknown_factor_and_level_are_named():
    with pytest.raises(CaseNameError, match="none of its row's factors"):
        levels_of(parse("sum/functional/colour=blue"))
    with pytest.raises(CaseNameError, match="ValueError"):
        sample_of(OPS["sum"], parse("sum/functional/row=long"))


def test_every_row_of_every_level_has_a_stored_array(monkeypatch):
    monkeypatch.setattr(
        arrays, "make", lambda counts, strength: pytest.fail(f"{strength} {counts}")
    )
    for name, op in OPS.items():
        space = space_of(name)
        for full in (False, True) if space else ():
            factors = space.factors(op, DesignScope(DTYPES, full))
            assert sum(1 for _ in covering(factors, 3 if full else 2)) > 1


def test_stored_arrays_cover_what_they_say():
    for strength, levels, rows in arrays.stored():
        for columns in combinations(range(min(len(levels), 6)), strength):
            met = {tuple(row[c] for c in columns) for row in rows}
            assert met == set(product(*(range(levels[c]) for c in columns)))


def test_each_size_is_large_while_all_others_are_one():
    factors = [factor("k", 5, 1, 257), factor("m", 4, 1, 65), factor("dtype", "float32")]
    alone = [(c["k"], c["m"]) for c in lonely(factors)]
    assert alone == [("257", "1"), ("1", "65")]


def test_negative_indices_and_inner_gaps_are_tried():
    names = {f.name: f.levels for f in space_of("index").factors(OPS["index"], SCOPE)}
    assert "negative" in names["pattern"]
    assert "inner-gap" in names["keys"]
    others = {f.name: f.levels for f in space_of("gather").factors(OPS["gather"], SCOPE)}
    assert "negative" not in others["pattern"]


def test_special_values_are_cast_between_each_pair_of_types():
    dtypes = ("float32", "bool", "int16")
    cases = design(OPS["_to_copy"], dtypes, "quick")
    cast = [levels_of(c) for c in cases]
    special = {(c["dtype"], c["to_dtype"]) for c in cast if c["values"] == "special"}
    assert special >= {(a, b) for a in dtypes for b in dtypes if a != b}


def test_rows_made_of_others_meet_neither_ends_of_range_nor_the_largest_rank():
    for name in ("special_modified_bessel_i1", "lcm", "conj"):
        named = {f.name: f.levels for f in space_of(name).factors(OPS[name], SCOPE)}
        assert not {"large", "tiny", "wide"} & set(named["values"])
        assert "8" not in named["rank"]


def test_positions_beyond_int16_are_indexed():
    for name in ("index", "gather", "index_select", "embedding"):
        named = {f.name: f.levels for f in space_of(name).factors(OPS[name], SCOPE)}
        assert "65537" in named["size"]
        sample_of(OPS[name], parse(f"{name}/functional/size=65537"))


@pytest.mark.parametrize("dtypes", [("float32", "float16"), ("int64", "bool"), ("bfloat16",)])
def test_a_case_means_the_same_whatever_dtypes_a_device_claims(dtypes):
    for name, op in OPS.items():
        space = space_of(name)
        for full in (False, True) if space else ():
            base = plain(space.factors(op, DesignScope(dtypes, full)))
            usual = plain(space.factors(op, DesignScope(DTYPES, True)))
            shared = (base.keys() & usual.keys()) - {"dtype"}  # which every case names
            assert {k: base[k] for k in shared} == {k: usual[k] for k in shared}, name


@pytest.mark.parametrize("name", ["stack", "cat", "add", "sum", "conj"])
def test_no_call_needs_more_dimensions_than_acl_has(name):
    for case in design(OPS[name], ("float32", "complex64"), "full"):
        results = int(name == "stack")
        ranks = [len(a.shape) + results for a in tensors_of(sample_of(OPS[name], case))]
        assert max(ranks) <= 8, case.id


def test_every_way_of_calling_meets_all_pairs_of_special_values():
    levels = [dict(c.factors) for c in design(OPS["isclose"], ("float32", "int32"), "quick")]
    calls = {x.get("call", "0") for x in levels
             if x.get("values") == "special" and x.get("row") == "257"}  # fmt: skip
    assert calls >= set(next(f for f in space_of("isclose").factors(OPS["isclose"], SCOPE)
                             if f.name == "call").levels)  # fmt: skip


def test_one_dimension_is_rolled_twice_and_variances_have_fewer_elements_than_they_correct_for():
    roll = sample_of(OPS["roll"], parse("roll/functional/dims=again/shifts=3"))
    assert roll.args[1:] == ((3, 2), (1, 1))
    one = sample_of(OPS["var"], parse("var/functional/row=1/correction=2"))
    assert one.kwargs["correction"] == 2
    assert 1 in one.args[0].shape


def test_shifts_go_beyond_the_bits_of_a_type():
    name = "bitwise_right_shift"
    space = {f.name for f in space_of(name).factors(OPS[name], DesignScope(("int64",)))}
    assert "values" in space
    drawn = recipe(OPS[name], parse(f"{name}/functional/dtype=int64/values=wide/row=513"), 0)
    assert {64, 65} & set(np.asarray(drawn.slots[1].array).reshape(-1).tolist())


def test_permuted_matrices_offer_one_negative_pivot_a_column():
    arg = Input((5, 5), fill="permuted")
    matrix = designed(arg, "key", 0)
    assert (matrix[0, :-1] == 0).all()
    assert matrix[1, 0] < 0
    assert np.count_nonzero(matrix[:, 0]) == 1


def test_halves_are_ties_and_rows_end_in_what_makes_scales_one():
    first = values(Arg((3, 32)), parse("aclnnAscendQuant/functional/s0/halves"), 0, 0)
    assert (first * 2 == np.rint(first * 2)).all()
    assert (first % 1 == 0.5).any()
    assert (first[:, -1] == 127).all()
    assert (values(Arg((3, 32)), parse("aclnnAscendQuant/functional/s0/halves"), 0, 1) == 1).all()


def test_every_designed_row_takes_the_plain_call_of_its_design():
    """A row whose plain call raises is left without designed cases."""
    plain_types = ("float32", "int64", "bool")
    empty = [n for n, op in OPS.items() if space_of(n) is not None and not takes(op, plain_types)]
    assert not empty, f"spaces.{empty}: the call that the space builds is none that the row takes"


@pytest.mark.parametrize("fill", ["special", "graded"])
def test_limits_of_a_call_are_among_its_values_where_the_dtype_holds_them(fill):
    limits = (0.25, 0.3, float("inf"))
    array = designed(Input((600,), "float16", fill=fill, marks=limits), "a key", 0)
    near = np.nextafter(np.float16(0.25), np.float16(1))
    assert {0.25, -0.25, 0.75, float(near)} <= set(array.tolist())
    assert np.float16(0.3) not in array


def test_a_call_marks_its_own_limits():
    drawn = recipe(OPS["hardtanh"].testing, parse("hardtanh/functional/call=2/dtype=float32"), 0)
    assert drawn.slots[0].arg.marks == (-2, 3)
