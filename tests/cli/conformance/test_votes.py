"""The vote of devices: who differs, in which way; made outcomes, no device."""

import json
from collections import Counter

import numpy as np
import pytest
from mindtorch_npu.conformance.record import journal, votes
from mindtorch_npu.conformance.record.result import Result
from mindtorch_npu.conformance.run import bits, comparing

CASE = "add/functional/s0"


def ballots(*digests, **verdicts):
    """One result for each device; `npu1="FLAKY"` is another verdict than PASS."""
    return [
        Result(CASE, "add", "functional", verdicts.get(f"npu{i}", "PASS"), device=f"npu:{i}",
               digest=digest)
        for i, digest in enumerate(digests)
    ]  # fmt: skip


def told(results, **repeats):
    notes = [
        ("repeat", {"case": CASE, "seed": 0, "device": f"npu:{n[3:]}", "digests": d})
        for n, d in repeats.items()
    ]
    return votes.deviations(votes.splits(results), votes.evidence(notes))


def test_devices_that_agree_have_no_deviation():
    assert told(ballots("a", "a", "a")) == []


def test_one_that_always_differs_is_a_deterministic_difference():
    (one,) = told(ballots("a", "b", "a"), npu1={"b": 20}, npu0={"a": 20})
    assert (one.place, one.kind, one.wrong, one.launches) == ("npu:1", votes.DETERMINISTIC, 20, 20)
    assert one.against == ("npu:0", "npu:2")


def test_one_that_differs_now_and_then_is_flaky():
    (one,) = told(ballots("a", "b", "a"), npu1={"b": 1, "a": 19}, npu0={"a": 20})
    assert (one.kind, one.wrong, one.launches) == (votes.FLAKY, 1, 20)


def test_one_whose_second_run_differed_is_flaky_though_its_digest_is_right():
    (one,) = told(ballots("a", "a", "a", npu1="FLAKY"), npu1={"a": 20})
    assert (one.place, one.kind) == ("npu:1", votes.FLAKY)


def test_an_operator_that_differs_from_itself_everywhere_blames_no_device():
    (one,) = told(ballots("a", "b", "a"), npu1={"b": 9, "a": 11}, npu0={"a": 12, "b": 8})
    assert one.kind == votes.OPERATOR
    assert votes.suspects([one]) == []


def test_devices_stuck_alike_do_not_outvote_the_one_that_meets_the_rule():
    """The reference votes too: of four devices three are broken in the same way."""
    broken = {"npu0": "FAIL", "npu1": "FAIL", "npu2": "FAIL"}
    found = told(ballots("b", "b", "b", "a", **broken), npu0={"b": 20}, npu3={"a": 20})
    assert [place for place, _ in votes.suspects(found)] == ["npu:0", "npu:1", "npu:2"]
    assert {d.against for d in found} == {("npu:3",)}


def test_a_case_that_no_device_could_judge_is_not_decided_by_one_that_did():
    results = ballots("", "", "a", npu0="UNSUPPORTED", npu1="UNSUPPORTED")
    assert [d.place for d in told(results)] == ["npu:2"]


def test_one_launch_that_differed_is_called_no_more_than_that():
    (one,) = told(ballots("a", "b", "a"))
    assert one.kind == votes.UNREPEATED
    assert [place for place, _ in votes.suspects([one])] == ["npu:1"]


def test_several_devices_with_the_same_other_bits_repeat_each_other():
    assert {d.kind for d in told(ballots("a", "b", "a", "b", "a"))} == {votes.DETERMINISTIC}


def test_other_bits_of_another_version_that_meet_the_rule_accuse_nobody():
    divided = votes.splits(ballots("a", "b", "a"))
    (one,) = votes.deviations(divided, {}, versions={"npu:1": "cann 8.1, most have 9.1"})
    assert (one.kind, one.text) == (votes.BY_DESIGN, "cann 8.1, most have 9.1")
    assert votes.suspects([one]) == []


@pytest.mark.parametrize(("cases", "launches"), [(3, {20}), (40, {20, 5})])
def test_every_case_that_differs_is_launched_again_on_both_sides(tmp_path, cases, launches):
    results = [
        Result(f"add/functional/s{i}", "add", "functional", "PASS", device=f"npu:{d}",
               digest="b" if d == 1 else "a")
        for i in range(cases) for d in range(3)
    ]  # fmt: skip
    batches = comparing.repeats(results, tmp_path)
    assert {b.cases for b in batches if b.device == "npu:1"} == {
        (f"add/functional/s{i}",) for i in range(cases)
    }
    assert Counter(b.device for b in batches) == {"npu:0": cases, "npu:1": cases}
    assert {b.options["repeat"] for b in batches} == launches


def test_a_deviation_keeps_its_class_in_a_journal(tmp_path):
    """Its kind was written over that of the line, and lost in every merge."""
    (one,) = told(ballots("a", "b", "a"), npu1={"b": 20}, npu0={"a": 20})
    book = journal.Journal(tmp_path / "a.jsonl", "run1")
    book.write("deviation", one.line())
    book.close()
    line = json.loads((tmp_path / "a.jsonl").read_text())
    assert (line["kind"], line["class"]) == ("deviation", votes.DETERMINISTIC)
    assert line["seed"] == 0


@pytest.mark.parametrize("name", ["kind", "run"])
def test_no_line_of_a_journal_hides_what_it_is(tmp_path, name):
    book = journal.Journal(tmp_path / "a.jsonl", "run1")
    with pytest.raises(ValueError, match="cannot have another"):
        book.write("note", {name: "flaky"})
    book.close()


def test_two_that_differ_cannot_be_decided():
    assert {d.kind for d in told(ballots("a", "b"))} == {votes.UNDECIDED}


def test_of_two_the_one_that_breaks_its_rule_is_named():
    (one,) = told(ballots("a", "b", npu1="FAIL"), npu1={"b": 20}, npu0={"a": 20})
    assert (one.place, one.kind) == ("npu:1", votes.DETERMINISTIC)


@pytest.mark.parametrize(
    ("up", "down", "bit"),
    [("8", "0", "bit 3, 0 → 1"), ("0", "1", "bit 0, 1 → 0"), ("8", "8", ""), ("c", "0", "")],
)
def test_stuck_is_one_bit_in_one_direction(up, down, bit):
    stated = [{"index": [0], "got": "8", "expected": "0", "up": up, "down": down}]
    assert votes.one_bit(stated) == bit
    key = (CASE, 0, "npu:1")
    seen = votes.evidence([("repeat", {"case": CASE, "seed": 0, "device": "npu:1",
                                       "digests": {"b": 20}})])  # fmt: skip
    (one,) = votes.deviations(votes.splits(ballots("a", "b", "a")), seen, {key: stated[0]})
    assert one.kind == (votes.STUCK if bit else votes.DETERMINISTIC)


def test_first_difference_names_element_and_bits():
    right = np.arange(12, dtype=np.float32).reshape(3, 4)
    wrong = right.copy()
    wrong.view(np.uint32)[1, 2] ^= 1 << 5
    wrong.view(np.uint32)[2, 0] ^= 1 << 5
    first = bits.first([bits.words(wrong)], [bits.words(right)])
    assert first is not None
    assert first.index == (1, 2)
    assert first.elements == 2
    assert first.up | first.down == 32
    assert bits.first([bits.words(right)], [bits.words(right)]) is None


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float64", "complex64", "complex128"])
def test_words_keep_every_bit(dtype):
    array = np.ones((2, 3), dtype)
    assert bits.words(array).tobytes() == array.tobytes()
    assert bits.words(array).shape[:2] == (2, 3)


def test_digest_tells_shape_and_dtype_apart():
    zeros = np.zeros(4, np.float32)
    names = {bits.digest([a]) for a in (zeros, zeros.reshape(2, 2), zeros.view(np.int32))}
    assert len(names) == 3
    assert bits.digest([]) == ""


def test_of_two_that_differ_the_one_that_differs_from_itself_is_flaky():
    kinds = {
        d.place: d.kind for d in told(ballots("a", "b"), npu0={"a": 20}, npu1={"b": 1, "a": 19})
    }
    assert kinds == {"npu:0": votes.UNDECIDED, "npu:1": votes.FLAKY}
    both = told(ballots("a", "b"), npu0={"a": 9, "c": 11}, npu1={"b": 1, "a": 19})
    assert {d.kind for d in both} == {votes.OPERATOR}
