"""Shrinking: what a failure does not need goes, sizes end at the boundary, dtypes are told."""

from mindtorch_npu.check.causes import kinds, paragraph
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
    lean = {"lean": -0.5}
    failure = Result(CASE.id, "sum", "out", "FAIL", cause=cause, dtype="float16", measure=lean)
    assert kinds(cause, failure)[0] == "rounding that cuts off"
    assert not any("a block size" in kind for kind in kinds(cause, failure))
