"""Shrinking: what a failure does not need goes, sizes end at the boundary, dtypes are told."""

from mindtorch_npu.commands.check.causes import kinds, paragraph
from mindtorch_npu.conformance.cases.case import designed
from mindtorch_npu.conformance.record.result import Result
from mindtorch_npu.conformance.run.shrink import shrink

PLAIN = {"form": "functional", "dtype": "float32", "row": "5", "layout": "contiguous",
         "values": "normal", "keepdim": "no"}  # fmt: skip
DTYPES = ("float32", "float16", "int32")
CASE = designed("sum", "out", {"dtype": "float16", "row": "4097", "layout": "stepped",
                               "values": "nan", "keepdim": "yes"})  # fmt: skip


def _failure(cause):
    return Result(CASE.id, "sum", "out", "FAIL", cause=cause.as_json())


def levels(case):
    return {**PLAIN, **dict(case.factors)}


def test_row_length_remains_with_its_exact_boundary():
    cause = shrink(CASE, PLAIN, DTYPES, lambda c: int(levels(c)["row"]) > 1024)
    assert cause.text() == "wrong for row length > 1024, any dtype"
    assert cause.sizes == {"row": (1024, 1025)}
    assert cause.case.form == "functional"


def test_two_conditions_remain_together_and_the_dtype_is_named():
    def fails(case):
        found = levels(case)
        return (found["dtype"], found["layout"], found["values"]) == ("float16", "stepped", "nan")

    cause = shrink(CASE, PLAIN, DTYPES, fails)
    assert cause.text() == "wrong for layout = stepped and values = nan, only float16"
    assert cause.passing_dtypes == ("float32", "int32")


def test_of_many_dtypes_those_that_pass_are_named_and_those_not_judged_are_not():
    many = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")

    def fails(case):
        dtype = levels(case)["dtype"]
        return None if dtype == "float64" else dtype != "bool"

    cause = shrink(CASE, PLAIN, many, fails)
    assert cause.text() == "wrong already in the plain case, any dtype but bool"
    assert "float64" not in (*cause.failing_dtypes, *cause.passing_dtypes)
    assert not any("branch of one type" in k for k in kinds(cause.as_json(), _failure(cause)))


def test_failure_of_the_plain_case_says_so():
    assert "already in the plain case, any dtype" in shrink(
        CASE, PLAIN, DTYPES, lambda _: True).text()  # fmt: skip


def test_an_attribute_is_named_by_what_the_call_passes():
    case = designed("add", "functional", {"dtype": "float32", "call": "1"})
    plain = {"form": "functional", "dtype": "float32", "call": "0"}
    cause = shrink(case, plain, DTYPES, lambda c: dict(c.factors).get("call") == "1")
    assert cause.text() == "wrong for alpha = 3, any dtype"


def test_few_cases_are_run():
    ran = []
    shrink(CASE, PLAIN, DTYPES, lambda c: bool(ran.append(c)) or levels(c)["values"] == "nan")
    assert len(ran) <= 48


def test_one_factor_among_many_is_found_in_few_runs_and_none_twice():
    ran = []
    shrink(CASE, PLAIN, ("float32",), lambda c: bool(ran.append(c)) or levels(c)["values"] == "nan")
    assert len({c.id for c in ran}) == len(ran) <= 10


def test_a_cause_covers_the_cases_that_need_no_other():
    cause = shrink(CASE, PLAIN, DTYPES, lambda c: int(levels(c)["row"]) > 1024)
    beyond = {"dtype": "int32", "row": "1025", "layout": "stepped"}
    assert cause.covers(designed("sum", "inplace", beyond))
    assert not cause.covers(designed("sum", "functional", {**beyond, "row": "1024"}))
    assert not cause.covers(designed("sum", "functional", {"dtype": "int32"}))

    def half_precision(case):
        return levels(case)["dtype"] == "float16" and levels(case)["values"] == "nan"

    cause = shrink(CASE, PLAIN, DTYPES, half_precision)
    assert cause.covers(CASE)
    assert not cause.covers(designed("sum", "functional", {"dtype": "int32", "values": "nan"}))


def test_what_takes_too_long_ends_with_what_is_known(monkeypatch):
    from mindtorch_npu.conformance.run import shrink as module

    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr(module.time, "monotonic", lambda: float(next(clock)))
    ran = []
    cause = shrink(CASE, PLAIN, DTYPES, lambda c: bool(ran.append(c)) or True)
    assert len(ran) <= 2
    assert cause.text()


def test_paragraph_begins_with_the_cause_and_names_kinds_of_defect():
    cause = shrink(CASE, PLAIN, DTYPES, lambda c: int(levels(c)["row"]) > 1024).as_json()
    pattern = {"wrong": 3, "elements": 64, "text": "a tail: the last 3 of 64", "blocks": "··█"}
    failure = Result(CASE.id, "sum", "out", "FAIL", cause=cause, pattern=pattern)
    item = paragraph("sum", [failure])
    assert item.title.text == "sum: wrong for row length > 1024, any dtype"
    told = dict(item.details)
    assert told["map"] == "··█"
    assert "a block size" in told["fits"]
    assert "a loop's tail" in told["fits"]
    assert "--case sum/functional/dtype=float16/row=1025" in told["again"]
    assert any("type" in k for k in kinds({**cause, "failing": [], "passing": ["int32"]}, failure))


def test_results_that_lean_one_way_are_told_before_sizes():
    cause = shrink(CASE, PLAIN, DTYPES, lambda c: int(levels(c)["row"]) > 338).as_json()
    lean = {"lean": -0.5, "max_ulp": 1.5}
    failure = Result(CASE.id, "sum", "out", "FAIL", cause=cause, dtype="float16", measure=lean)
    assert kinds(cause, failure)[0] == "rounding that cuts off"
    assert not any("a block size" in kind for kind in kinds(cause, failure))


def _paragraph(cause, **shown):
    """The details of a paragraph whose smallest case gave `shown`."""
    first = Result(CASE.id, "sum", "out", "FAIL", reason="of the first failure", dtype="float16")
    told = Result("sum/functional/dtype=float16", "sum", "functional", "FAIL", **shown)
    cause = {**cause.as_json(), "result": told.as_json()}
    return dict(paragraph("sum", [first.with_(cause=cause)]).details)


def test_a_paragraph_shows_what_the_smallest_case_gave():
    cause = shrink(CASE, PLAIN, DTYPES, lambda _: True)
    worst = {"index": [0], "got": "1", "expected": "7.6"}
    pattern = {"wrong": 1, "elements": 5, "text": "one element", "blocks": "█····"}
    told = _paragraph(cause, measure={"worst": worst}, pattern=pattern)
    assert told["worst"] == "at [0] got 1, expected 7.6"
    assert told["map"] == "█····"


def test_a_guard_says_what_kind_of_defect_it_saw():
    cause = shrink(CASE, PLAIN, DTYPES, lambda _: True)
    told = _paragraph(cause, reason="1 element outside of the output changed",
                      guards=("1 element outside of the output changed",))  # fmt: skip
    assert told["fits"] == "writes past the end of a tensor"
    assert told["why"] == "1 element outside of the output changed"
    assert "guard" not in told


def test_one_result_that_is_far_off_is_no_rounding():
    cause = shrink(CASE, PLAIN, DTYPES, lambda c: int(levels(c)["row"]) > 512)
    far = {"lean": 0.9, "max_ulp": 8.4e6}
    assert "a block size" in _paragraph(cause, dtype="float16", measure=far)["fits"]
    near = {"lean": 0.9, "max_ulp": 1.2}
    assert "half away from zero" in _paragraph(cause, dtype="float16", measure=near)["fits"]


def test_a_map_without_wrong_elements_is_not_shown():
    cause = shrink(CASE, PLAIN, DTYPES, lambda _: True)
    pattern = {"wrong": 0, "elements": 5, "text": "none beyond the bound", "blocks": "·····"}
    assert "map" not in _paragraph(cause, reason="signed bias", pattern=pattern)
