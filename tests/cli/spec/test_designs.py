"""A design meets what a kernel may get wrong, and says what its calls leave alike."""

import numpy as np
import pytest
from mindtorch_npu.spec import (
    Rule,
    array,
    batch,
    choice,
    content,
    contents,
    equals,
    integer,
    mask,
    number,
    only,
    out,
    require,
    rows,
    seq,
    sizes,
    tensor,
)
from mindtorch_npu.spec.design import QUICK_CALLS, design
from mindtorch_npu.spec.gaps import alike
from mindtorch_npu.spec.row import row_of


def declared(*structure, **params):
    rule = Rule("composite", "a test")
    return row_of("aclnnFoo", rule, structure, params, lambda: None, "test").declaration


def test_a_parameter_named_like_a_layout_is_an_argument():
    own = declared(x=tensor("M N"), topK=integer(1, 2, 5), layoutOptional=choice("a", "b"),
                   valuesMode=choice(0, 1), y=out("x"))  # fmt: skip
    calls = design(own, ("float32",)).calls
    pairs = {(c["topK"], c["layoutOptional"], c["valuesMode"]) for c in calls}
    assert {(k, "b") for k in ("2", "5")} <= {p[:2] for p in pairs}
    assert {(k, "1") for k in ("2", "5")} <= {p[::2] for p in pairs}


def test_sizes_differ_beside_a_level_that_is_tried_alone():
    own = declared(x=tensor("M N"), mode=choice(*range(30)), y=out("x"))
    calls = [c for c in design(own, ("float32",)).calls
             if c["mode"] != "0" and c.get("layout.x") == "contiguous"]  # fmt: skip
    assert len({(c["M"], c["N"]) for c in calls}) > 10


def test_calls_that_mix_levels_have_sizes_of_full_too():
    own = declared(sizes(M=rows), x=tensor("M N"), y=out("x"))
    drawn = {c["M"] for c in design(own, ("float32",)).calls}
    assert drawn & set(rows.full)


def test_sizes_without_a_common_level_are_equal_in_a_call():
    own = declared(sizes(B=batch(2, 1, 3), S=seq(6, 17, 33)), x=tensor("B S"), y=out("x"))
    calls = design(own, ("float32",)).calls
    assert any(c["B"] == c["S"] != "1" for c in calls)


def test_pairs_that_no_call_can_have_do_not_end_a_search():
    own = declared(
        require("a == 0 or b == 0", "b == 0 or c == 0", "a == 0 or c == 0", refuses=None),
        x=tensor("M N"), **{n: integer(*range(9)) for n in "abcdef"}, y=out("x"),
    )  # fmt: skip
    calls = design(own, ("float32",)).calls
    assert len(calls) >= QUICK_CALLS
    free = {(c["d"], c["e"]) for c in calls}
    assert len(free) > 35


def test_a_requirement_is_mended_by_another_dtype():
    own = declared(require("dtype(x) != 'int8' or mode == 0", refuses=None),
                   x=tensor("M N", "f16 i8"), mode=only(1, "a test"), y=out("x"))  # fmt: skip
    assert all(c["dtype"] == "float16" for c in design(own, ("int8", "float16")).calls)


@pytest.mark.parametrize("pattern", contents.MASKS)
def test_masks_of_samples_differ(pattern):
    rng = np.random.default_rng(3)
    drawn = contents.mask(rng, pattern, (3, 4, 5))
    assert set(np.unique(drawn)) <= {0, 1}
    if pattern not in ("none", "causal"):
        assert (drawn != drawn[:1]).any()


def test_each_row_of_a_mask_has_an_open_column():
    rng = np.random.default_rng(3)
    for pattern in ("random", "all_but_one", "padding", "causal"):
        assert not contents.mask(rng, pattern, (3, 7, 5)).all(-1).any(), pattern


CALLS = [{"M": str(m), "N": str(n)} for m in (2, 3, 4) for n in (5, 7)]


def test_elements_that_never_differ_along_an_axis_are_named():
    def same(rng, _pattern, draw):
        return np.broadcast_to(rng.integers(0, 9, draw["N"]), (draw["M"], draw["N"]))

    own = declared(x=tensor("M N"), at=content(same, "same", shape="M N"), y=out("x"))
    assert alike(own, CALLS) == {"at": "elements are alike along its second to last axis"}
    told = declared(
        x=tensor("M N"), at=content(same, "same", shape="M N", alike="documents"), y=out("x")
    )
    assert alike(told, CALLS) == {}


def test_members_and_numbers_that_never_differ_are_named():
    own = declared(x=tensor("M N"), pads=array((1, 1), (2, 2)), a=number(1.0, 2.0),
                   b=number(1.0, 2.0), c=equals("a"), y=out("x"))  # fmt: skip
    both = [{**c, "pads": p, "a": v, "b": v} for c in CALLS
            for p, v in (("(1,1)", "1.0"), ("(2,2)", "2.0"))]  # fmt: skip
    assert alike(own, both) == {"pads": "its members are alike", "b": "always the number of a"}
    assert "b" not in alike(own, [*both, {"a": "1.0", "b": "2.0"}])


def test_a_mask_differs_along_each_of_its_axes():
    own = declared(x=tensor("B M N"), seen=mask("B M N"), y=out("x"))
    assert alike(own, design(own, ("float32",)).calls) == {}
