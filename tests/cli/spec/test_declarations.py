"""A declaration says what an operator may be given, and refuses what contradicts itself."""

import os
import subprocess
import sys
from itertools import product

import numpy as np
import pytest
from mindtorch_npu.spec import *
from mindtorch_npu.spec.design import design
from mindtorch_npu.spec.domains import Whole
from mindtorch_npu.spec.row import row_of

RULE = Rule("composite", "a test")


def declared(*structure, **params):
    return row_of("aclnnFoo", RULE, structure, params, lambda: None, "test").declaration


def attention(*structure, **more):
    return declared(
        *structure,
        query=tensor("B S D"),
        key=tensor("B T D", "query"),
        mask=optional(mask("S T"), only="mode == 1"),
        mode=choice(0, 1, 2),
        **more,
        y=out("query"),
    )


def test_a_size_that_stands_in_two_shapes_is_one_size():
    drawn = attention().draw({"B": "3", "S": "17", "T": "5", "D": "64"})
    assert drawn["query"].shape == (3, 17, 64)
    assert drawn["key"].shape == (3, 5, 64)


def test_sizes_take_arithmetic_and_several_dims():
    own = declared(
        sizes(G=choice_of(1, 2), N="2*G"), x=tensor("*B N+1"), w=tensor("ceil(N,2)"), y=out("x")
    )
    drawn = own.draw({"*B": "2x3", "G": "2"})
    assert drawn["x"].shape == (2, 3, 5)
    assert drawn["w"].shape == (2,)


def test_an_array_has_the_dims_of_a_shape():
    own = declared(x=tensor("*B *N"), normalizedShape=dims("*N"), y=out("x"))
    assert own.draw({"*N": "5x9"})["normalizedShape"] == (5, 9)
    assert "normalizedShape" not in own.unvaried()


def choice_of(*levels):
    from mindtorch_npu.spec import group

    return group(*levels)


def test_a_mode_decides_what_another_parameter_is():
    own = declared(
        x=by("layout", {"BS": tensor("B S"), "SB": tensor("S B")}),
        layout=choice("BS", "SB"),
        y=out("f32"),
    )
    assert own.draw({"B": "3", "S": "17"})["x"].shape == (3, 17)
    assert own.draw({"B": "3", "S": "17", "layout": "SB"})["x"].shape == (17, 3)


def test_an_optional_tensor_is_null_where_its_condition_does_not_hold():
    own = attention()
    assert own.draw({"mask": "causal", "mode": "0"})["mask"] is None
    assert own.draw({"mask": "causal", "mode": "1"})["mask"].shape == (6, 8)
    assert own.draw({"mask": "causal", "mode": "0"}).actual()["mask"] == "null"


def test_dtypes_go_together_as_the_table_says():
    own = declared(
        dtypes("""x  scale y
                  i8 f32   f16|bf16
                  i8 -     i8
                  f16 f16  f16"""),
        x=tensor("*S"),
        scale=optional(tensor("1")),
        mode=choice(0, 1),
        y=out("x"),
    )
    assert own.dtypes() == ("int8", "float16")
    assert own.draw({"types": "0", "scale": "given"}, "int8")["scale"].dtype == "float32"
    assert own.draw({"types": "2"}, "int8")["scale"] is None
    assert own.draw({"types": "1", "scale": "given"}, "float16")["scale"].dtype == "float16"


def test_a_version_without_a_parameter_has_it_at_its_plain_level():
    own = declared(x=tensor("T N"), lengths=by("ends", {
        False: parts("2", of="T", patterns="even"),
        True: parts("2", of="T", form="ends", patterns="even")}),
        ends=flag(), y=out("x"), )  # fmt: skip
    older = own.without(["ends"])
    assert "ends" not in {f.name for f in older.factors((), True)}
    assert older.draw({"T": "8", "ends": "True"})["lengths"].values().tolist() == [4, 4]


def test_a_parameter_called_dtype_is_not_the_dtype_under_test():
    own = declared(x=tensor("*S", "f16 f32"), dtype=choice(1, 27), y=out("dtype"))
    drawn = own.draw({"dtype": "float16", "dtype_": "27"})
    assert (drawn["x"].dtype, drawn["dtype"]) == ("float16", 27)


def test_a_table_states_the_dtype_of_a_result():
    own = declared(
        dtypes("""x  y
                  i8 f16|bf16
                  f16 f16"""),
        x=tensor("*S"), y=out("x"),
    )  # fmt: skip
    assert own.draw({"types": "1"}, "int8").result_dtypes() == {"y.dtype": "bfloat16"}
    assert own.draw({"types": "1"}, "float16").result_dtypes() == {"y.dtype": "float16"}


def test_a_dtype_decides_what_a_parameter_is():
    own = declared(
        dtypes("""x  y
                  i8 i8
                  f16 f16"""),
        x=by("x.dtype", {"i8": tensor("*S", "", -128, 127), "f16": tensor("*S")}), y=out("x"),
    )  # fmt: skip
    assert own.draw({}, "int8")["x"].low == -128
    assert own.draw({}, "float16")["x"].low == -2


def test_the_members_of_a_list_have_elements_of_their_own():
    own = declared(x=tensor("T N"), to=several("2", index("T", into="T")), y=out("x"))
    one, other = own.draw({"T": "33", "to": "random"})["to"]
    assert one.shape == other.shape == (33,)
    assert one.values().tolist() != other.values().tolist()


def test_contents_may_be_of_several_dtypes():
    own = declared(x=content(lambda *_: np.eye(3), "unit", "f32 f64", shape="3 3"), y=out("x"))
    assert own.main == "x"
    assert own.dtypes() == ("float32", "float64")
    assert own.draw({}, "float64")["x"].dtype == "float64"


def test_the_members_of_a_list_may_have_domains_of_their_own():
    own = declared(x=each(tensor("T N", "f16 f32"), tensor("N", "x"), tensor("1 N")), y=out("x"))
    value = own.draw({"T": "3", "N": "5"}, "float32")["x"]
    assert [v.shape for v in value] == [(3, 5), (5,), (1, 5)]
    assert {v.dtype for v in value} == {"float32"}


def test_a_mode_states_the_dtype_of_a_result():
    own = declared(x=tensor("*S"), short=flag(),
                   y=by("short", {False: out("i64"), True: out("i32")}))  # fmt: skip
    assert own.draw({}).result_dtypes() == {"y.dtype": "int64"}
    assert own.draw({"short": "True"}).result_dtypes() == {"y.dtype": "int32"}


def test_a_relation_reads_the_number_of_a_scalar():
    own = declared(require("alpha % 1 == 0 or floating(x)"), x=tensor("*S", "f32 i32"),
                   alpha=scalar("x", 1, 0.5), y=out("x"))  # fmt: skip
    assert own.draw({"alpha": "0.5"}, "float32").holds() is None
    assert own.draw({"alpha": "0.5"}, "int32").holds() is not None


def test_an_axis_is_counted_from_both_ends():
    own = declared(x=tensor("*B M *N"), dim=axis("M", "*B M *N"), y=out("x"))
    assert own.draw({"*B": "2x3", "*N": "5", "dim": "front"})["dim"] == 2
    assert own.draw({"*B": "2x3", "*N": "5", "dim": "back"})["dim"] == -2
    assert own.draw({"*B": "-", "*N": "-", "dim": "back"})["dim"] == -1


def test_axes_of_a_shape_follow_its_rank():
    own = declared(x=tensor("*S"), dims=axes("*S", "last ends turned all none"), y=out("x"))
    dims = {p: own.draw({"*S": "2x3x4", "dims": p})["dims"] for p in ("ends", "turned", "all")}
    assert dims == {"ends": (0, 2), "turned": (-1, 0), "all": (0, 1, 2)}
    assert own.draw({"*S": "7", "dims": "ends"})["dims"] == (0,)
    assert own.draw({"*S": "2x3", "dims": "none"})["dims"] == ()


def test_a_result_whose_size_follows_from_values_lies_as_the_operator_writes_it():
    own = declared(x=tensor("*S"), y=out("i64", dynamic=True))
    assert "to" not in {f.name for f in own.factors(("float32",), False)}
    assert "layout.x" in {f.name for f in own.factors(("float32",), False)}


def test_every_pair_of_modes_meets():
    own = declared(x=tensor("*S"), a=choice(0, 1, 2), b=choice("p", "q", "r"), c=flag(), y=out("x"))
    calls = design(own, ("float32", "float16")).calls
    met = {(c["a"], c["b"]) for c in calls}
    assert met == {(a, b) for a in "012" for b in "pqr"}
    assert {(c["c"], c["dtype"]) for c in calls} == {
        (c, d) for c in ("True", "False") for d in ("float32", "float16")
    }


def test_sizes_that_share_a_level_are_equal_in_some_call():
    own = declared(sizes(A=row(5, 1, 3, 17, 257), C=row(9, 1, 33, 257, 1025), G=row(4, 3, 8)),
                   x=tensor("A C"), y=tensor("G A"), z=out("x"))  # fmt: skip
    calls = design(own, ("float32",)).calls
    assert any(c["A"] == c["C"] == "257" for c in calls)
    assert any(c["A"] == c["G"] == "3" for c in calls)


def test_requirements_hold_in_every_call():
    own = attention(require("S <= T"))
    calls = design(own, ("float32",)).calls
    assert len(calls) > 20
    for levels in calls:
        assert int(levels["S"]) <= int(levels["T"])


def test_relations_are_tried_both_ways():
    own = attention(both("S > T", "S == T", "T % 16 == 1"))
    found = design(own, ("float32",))
    assert found.unmet_relations == ()
    sides = {int(c["S"]) > int(c["T"]) for c in found.calls}
    assert sides == {True, False}


def test_a_pin_is_among_the_calls():
    calls = design(attention(pin("S=130 T=3 mode=2", "rows see nothing")), ("float32",)).calls
    assert any((c["S"], c["T"], c["mode"]) == ("130", "3", "2") for c in calls)


def test_designs_are_the_same_each_time():
    one, other = attention(both("S > T")), attention(both("S > T"))
    assert design(one, ("float32",)) == design(other, ("float32",))


def test_members_of_a_list_differ_in_size():
    own = declared(x=tensors("L", "M@L N"), y=out("x"))
    shapes = [t.shape for t in own.draw({"L": "8"})["x"]]
    assert len(shapes) == 8
    assert len({s[0] for s in shapes}) > 1
    assert len({s[1] for s in shapes}) == 1


def test_members_beside_an_empty_first_one_may_be_empty():
    own = declared(sizes({"*S": shape("3x5", "0x3")}), x=tensors("L", "*S@L"), y=out("x"))
    members = own.draw({"L": "5", "*S": "0x3"})["x"]
    assert [m.shape[0] for m in members] == [0, 0, 4, 0, 2]


def test_numbers_in_lists_and_in_tensors_have_the_values_of_their_levels():
    own = declared(
        dtypes("x n\nf32 f32\nbf16 f32"),
        x=tensors("L", "S"), n=scalar_tensor("x", 0.5, float("-inf")),
        several=numbers("L", 2.0, -1.5), y=out("x"))  # fmt: skip
    assert own.draw({})["n"].values().tolist() == [0.5]
    drawn = own.draw({"n": "-inf", "several": "mixed", "L": "3", "dtype": "bfloat16"})
    assert drawn["n"].values().tolist() == [-np.inf]
    assert drawn["n"].dtype == "float32"
    assert drawn["several"] == (2.0, -1.5, 2.0)


def test_what_is_rounded_to_steps_is_tried_on_halves():
    assert "halves" in Rule("gradient", "a test", steps=True).fills()


def test_sums_are_tried_on_graded_magnitudes_and_those_that_state_it_on_nan():
    assert {"graded", "nan"} <= set(Rule("gradient", "a test").fills())
    for rule in (
        Rule("gradient", "a test", specials=False),
        Rule("gradient", "a test", steps=True),
    ):
        assert "graded" in rule.fills()
        assert "nan" not in rule.fills()


def test_what_is_written_in_place_never_broadcasts():
    own = declared(
        n=number(1.0, 0.0), y=tensor("M N"),
        x=inout(Whole(by("n", {1.0: forms(whole=tensor("M N"), row=tensor("N")),
                               0.0: forms(one=tensor("1 1"), all=tensor("M N"))}))),
        out=out("y"))  # fmt: skip
    for n, level in product(("1.0", "0.0"), own.params["x"].levels(True)):
        call = own.draw({"n": n, "x": level, "M": "5", "N": "9"})
        assert call["x"].shape == (5, 9)


def test_group_lists_sum_to_the_tokens_in_every_pattern():
    for form in ("sizes", "ends"):
        own = declared(x=tensor("T N"), groups=parts("E", of="T", form=form), y=out("x"))
        for pattern in own.params["groups"].levels(True):
            values = own.draw({"groups": pattern, "E": "8", "T": "130"})["groups"].values()
            assert len(values) == 8
            assert (values[-1] if form == "ends" else values.sum()) == 130
            assert (np.diff(values) >= 0).all() or form == "sizes"
    empty = own.draw({"groups": "empty_first", "E": "8", "T": "130"})["groups"].values()
    assert empty[0] == 0


def test_routing_names_no_expert_twice_for_a_token():
    own = declared(sizes(K=choice_of(2)), x=tensor("T N"), idx=routing("T K", into="E"), y=out("x"))
    for pattern in own.params["idx"].levels(True):
        rows = own.draw({"idx": pattern, "E": "8", "T": "33"})["idx"].values()
        assert rows.min() >= 0
        assert rows.max() < 8
        assert (rows[:, 0] != rows[:, 1]).all(), pattern


def test_slots_are_none_twice():
    own = declared(x=tensor("T N"), at=slots("T", into="T+3", hole=-1), y=out("x"))
    for pattern in own.params["at"].levels(True):
        places = own.draw({"at": pattern, "T": "33"})["at"].values()
        assert len({p for p in places if p >= 0}) == (places >= 0).sum()
    assert (own.draw({"at": "holes", "T": "33"})["at"].values() == -1).any()


@pytest.mark.parametrize(
    ("structure", "params", "words"),
    [
        ((), {"x": tensor("B S Q"), "y": out("x")}, "'Q'"),
        ((), {"x": tensor("B S", "f23"), "y": out("x")}, "f23"),
        ((), {"x": tensor("B S"), "y": out("xx")}, "'xx'.*did you mean 'x'"),
        ((sizes(Q=choice_of(1)),), {"x": tensor("B S"), "y": out("x")}, "no shape.*'Q'"),
        ((require("B <= SS"),), {"x": tensor("B S"), "y": out("x")}, "'SS'"),
        ((both("rank(z) > 1"),), {"x": tensor("B S"), "y": out("x")}, "'z'"),
        (
            (pin("modee=1", "why"),),
            {"x": tensor("B"), "mode": choice(0, 1), "y": out("x")},
            "modee",
        ),
        ((dtypes("x w\nf16 f16"),), {"x": tensor("B S"), "y": out("x")}, "column 'w'"),
        ((overload("a", z=flag()),), {"x": tensor("B S"), "y": out("x")}, "'z'"),
        ((), {"x": tensor("B S"), "alpha": 1.0, "y": out("x")}, "alpha=1.0 is no domain"),
        ((), {"x": tensor("B S"), "n": integer("S +"), "y": out("x")}, "no expression"),
        ((), {"x": tensor("B S"), "n": integer("__import__('os')"), "y": out("x")}, "no function"),
        ((), {"x": tensor("B (lambda:1)()"), "y": out("x")}, "not supported"),
    ],
)
def test_nonsense_is_refused_with_the_near_name(structure, params, words):
    with pytest.raises(DeclarationError, match=words):
        declared(*structure, **params)


def test_a_reference_takes_what_the_declaration_gives():
    with pytest.raises(DeclarationError, match=r"takes 'epsilom'.*did you mean 'epsilon'"):
        row_of("aclnnFoo", RULE, (), {"x": tensor("S"), "epsilon": number(1.0), "y": out("x")},
               lambda x, epsilom: x, "test")  # fmt: skip


def test_parameters_are_the_headers_in_its_order():
    own = declared(x=tensor("S"), n=integer(1, 2), y=out("x"))
    own.bind(["x", "n", "y"])
    with pytest.raises(DeclarationError, match=r"no parameter 'n'.*did you mean 'nn'"):
        own.bind(["x", "nn", "y"])
    with pytest.raises(DeclarationError, match="no domain for the header's 'z'"):
        own.bind(["x", "n", "y", "z"])
    with pytest.raises(DeclarationError, match="order"):
        own.bind(["n", "x", "y"])


def test_what_stands_beside_the_header_is_drawn_for_the_reference_alone():
    own = declared(x=tensor("S"), y=out("x"), size=beside(choice(3, 5)))
    own.bind(["x", "y"])
    assert [own.draw({"size": n})["size"] for n in ("3", "5")] == [3, 5]


def test_what_never_varies_is_listed_with_its_reason():
    own = declared(
        x=tensor("S"), a=only(3, "documents take 3 alone"), b=choice(1), c=null("reserved"),
        d=ignored("speed", choice(0, 1)), e=equals("S"),
        f=forms(absent=None, row=tensor("S")), g=inout(tensor("S")), y=out("x"))  # fmt: skip
    assert own.unvaried() == {"a": "documents take 3 alone", "b": "", "c": "reserved"}


def test_a_mode_decides_the_dtype_of_a_result():
    own = declared(x=tensor("S", "f16"), mode=choice(0, 1),
                   y=by("mode", {0: out("x"), 1: out("i8")}))  # fmt: skip
    assert list(own.outs) == ["y"]
    assert list(own.inputs) == ["x", "mode"]


def test_sizes_may_stand_in_several_places():
    own = declared(sizes(G="2*N"), sizes(N=choice_of(3)), x=tensor("G"), y=out("x"))
    assert own.draw({})["x"].shape == (6,)


DERIVED = """
from mindtorch_npu.spec import Rule, choice, group, out, require, sizes, spec, tensor, ROWS
from mindtorch_npu.spec.design import design

@spec("aclnnDerived", Rule("exact", "a test"),
      sizes(G=group(1, 2, 5), W=group(3, 4, 9), P=group(1, 2), E="G*W*P"),
      require("P <= G"), x=tensor("E", "f32"), k=choice(1, 2), out=out("x"))
def derived(x, k): return x

print(design(ROWS["aclnnDerived"].declaration, ()).calls)
"""


def test_a_design_is_the_same_in_every_process():
    """Shards and resumed runs name cases by what each process designs for itself."""
    texts = {
        subprocess.run([sys.executable, "-c", DERIVED], capture_output=True, text=True, check=True,
                       env=os.environ | {"PYTHONHASHSEED": str(seed)}).stdout
        for seed in range(4)
    }  # fmt: skip
    assert len(texts) == 1


def test_a_level_that_only_a_form_and_a_mode_have_is_met():
    masks = by("mode", {0: None, 1: None, 2: optional(mask("N", patterns="some last"))})
    own = declared(overload("plain"), overload("other", m=masks), x=tensor("N"),
                   mode=choice(0, 1, 2), m=null("of the other form"), y=out("x"))  # fmt: skip
    result = design(own, ())
    assert not result.unmet_levels
    calls = [c for c in result.calls if c["overload"] == "other" and c["mode"] == "2"]
    assert {c["m"] for c in calls} >= {"some", "last"}


def test_a_constant_mask_does_not_count_against_the_limit_of_elements():
    own = declared(x=tensor("N"), mode=choice(0, 1), y=out("x"),
                   mask=by("mode", {0: None, 1: causal("2048 2048")}))  # fmt: skip
    assert {c["mode"] for c in design(own, ()).calls} == {"0", "1"}
