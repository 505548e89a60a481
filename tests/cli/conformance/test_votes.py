"""The vote of devices: who differs, in which way; made outcomes, no device."""

from __future__ import annotations

import numpy as np
import pytest
from mindtorch_npu.conformance.record import votes
from mindtorch_npu.conformance.record.result import Result
from mindtorch_npu.conformance.run import bits

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
    return votes.deviations(results, votes.evidence(notes))


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
    (one,) = votes.deviations(ballots("a", "b", "a"), seen, {key: stated[0]})
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
