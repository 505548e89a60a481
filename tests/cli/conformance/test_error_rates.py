"""How often flaky, stuck and different by design are taken for each other: the rates that
docs/fleet.md states, by drawn launches that go through the same rules as a run's.
"""

import math

import numpy as np
import pytest
from mindtorch_npu.conformance.record import votes
from mindtorch_npu.conformance.record.result import Result
from mindtorch_npu.conformance.run import bits, comparing

CASE = "add/functional/s0"


def results(*digests, nodes=()):
    return [
        Result(CASE, "add", "functional", "PASS", device=f"npu:{i}", digest=digest,
               node=nodes[i] if nodes else "")
        for i, digest in enumerate(digests)
    ]  # fmt: skip


def kind(launches, differences=None):
    """The class of a device whose launches gave these digests, among two that gave "a"."""
    key = (CASE, 0, "npu:1")
    counts = {d: launches.count(d) for d in launches}
    note = {"case": CASE, "seed": 0, "device": "npu:1", "digests": counts}
    seen = votes.evidence([("repeat", note)])
    named = {} if differences is None else {key: differences}
    (one,) = votes.deviations(votes.splits(results("a", launches[0], "a")), seen, named)
    return one.kind


def repeated(rng, p, times):
    """Launches after the one that was wrong: as often as a run repeats a case."""
    return ["b", *("b" if rng.random() < p else "a" for _ in range(times - 1))]


def within(count, trials, rate):
    """Whether a count is what a rate gives, but for once in a hundred thousand."""
    spread = math.sqrt(trials * rate * (1 - rate)) or 1.0
    return abs(count - trials * rate) <= 4.5 * spread + 1


@pytest.mark.parametrize(
    ("p", "times"), [(0.9, comparing._TIMES), (0.5, comparing._BRIEF), (0.1, comparing._BRIEF)]
)
def test_a_fault_that_comes_and_goes_is_called_steady_as_rarely_as_stated(p, times):
    rng = np.random.default_rng(7)
    trials = 1000
    missed = sum(kind(repeated(rng, p, times)) != votes.FLAKY for _ in range(trials))
    assert within(missed, trials, p ** (times - 1))


def test_a_fault_that_is_always_there_is_never_called_flaky():
    for times in (comparing._BRIEF, comparing._TIMES):
        assert kind(["b"] * times) == votes.DETERMINISTIC


def difference(words, wrong):
    return bits.first([wrong], [words]).as_json()


@pytest.mark.parametrize(("elements", "width"), [(1, 32), (2, 32), (2, 16), (3, 32)])
def test_random_bits_look_like_a_stuck_one_as_rarely_as_stated(elements, width):
    """A difference in k elements, one random bit each, is one bit in one direction by chance."""
    rng = np.random.default_rng(11)
    trials, mistaken = 1000, 0
    dtype = np.dtype(f"u{width // 8}")
    for _ in range(trials):
        words = rng.integers(0, 1 << width, elements, dtype=np.uint64).astype(dtype)
        flips = np.array([1 << int(b) for b in rng.integers(0, width, elements)], dtype)
        mistaken += bool(votes.one_bit([difference(words, words ^ flips)]))
    assert within(mistaken, trials, (2 * width) ** -(elements - 1))


def test_a_stuck_bit_is_always_called_stuck():
    rng = np.random.default_rng(13)
    for _ in range(100):
        words = rng.integers(0, 1 << 32, 64, dtype=np.uint64).astype(np.uint32)
        mask = np.uint32(1 << int(rng.integers(0, 32)))
        wrong = words | mask if rng.random() < 0.5 else words & ~mask
        assert kind(["b"] * 20, difference(words, wrong)) == votes.STUCK


def against(first, others):
    """The class of npu:1 by its launches and those of npu:0, which has the majority or, of two
    devices, the other vote."""
    notes = [("repeat", {"case": CASE, "seed": 0, "device": f"npu:{i}",
                         "digests": {d: launches.count(d) for d in launches}})
             for i, launches in ((1, first), (0, others))]  # fmt: skip
    return votes.evidence(notes)


def launches(rng, usual, p, times):
    """`usual`, then as often as a run repeats a case; other bits in a share p."""
    return [usual, *("c" if rng.random() < p else usual for _ in range(times - 1))]


@pytest.mark.parametrize(
    ("p", "times"), [(0.1, comparing._TIMES), (0.5, comparing._BRIEF), (0.1, comparing._BRIEF)]
)
def test_an_operator_that_is_not_deterministic_speaks_against_a_device_as_rarely_as_stated(
    p, times
):
    rng, trials, mistaken = np.random.default_rng(17), 1000, 0
    divided = votes.splits(results("a", "b", "a"))
    for _ in range(trials):
        seen = against(["b"] * times, launches(rng, "a", p, times))
        (one,) = votes.deviations(divided, seen)
        mistaken += one.kind != votes.OPERATOR
    assert within(mistaken, trials, (1 - p) ** (times - 1))


def test_of_two_devices_one_that_flips_is_undecided_as_rarely_as_stated():
    rng, trials, undecided, p = np.random.default_rng(19), 1000, 0, 0.8
    divided = votes.splits(results("a", "b"))
    for _ in range(trials):
        first = ["b", *("b" if rng.random() < p else "a" for _ in range(comparing._TIMES - 1))]
        kinds = {d.place: d.kind for d in votes.deviations(divided, against(first, ["a"] * 20))}
        assert kinds["npu:0"] == votes.UNDECIDED
        undecided += kinds["npu:1"] == votes.UNDECIDED
    assert within(undecided, trials, p ** (comparing._TIMES - 1))


def test_a_difference_that_nobody_asked_for_again_has_no_other_class():
    (one,) = votes.deviations(votes.splits(results("a", "b", "a")), {})
    assert one.kind == votes.UNREPEATED


OLD = "driver 25.2, most have 25.5"


def by_versions(digests, old):
    """The classes of devices of which `old` have another driver than most."""
    versions = {f"npu:{i}": OLD for i in old}
    found = votes.deviations(votes.splits(results(*digests)), {}, versions=versions)
    return {d.place: d.kind for d in found}


def test_other_versions_explain_a_difference_that_all_who_have_them_show():
    kinds = by_versions("aaaabb", old=(4, 5))
    assert kinds == {"npu:4": votes.BY_DESIGN, "npu:5": votes.BY_DESIGN}


@pytest.mark.parametrize("digests", ["aaaaba", "aaaabc"])
def test_a_chip_that_differs_from_others_of_its_versions_is_not_excused(digests):
    """It was: whatever met the rule on a host with another driver counted as by design."""
    kinds = by_versions(digests, old=(4, 5))
    assert votes.BY_DESIGN not in kinds.values()
    assert kinds["npu:4"] in votes.ABOUT_DEVICES


def test_a_lone_chip_of_its_versions_is_excused_as_documents_say():
    assert by_versions("aaaab", old=(4,)) == {"npu:4": votes.BY_DESIGN}
