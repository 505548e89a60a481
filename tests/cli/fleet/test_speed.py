"""Slow devices: named when they are, and healthy fleets named in at most one report of 100."""

import numpy as np
import pytest
from journals import result
from mindtorch_npu.fleet import speed
from mindtorch_npu.fleet.tally import Tally
from scipy.stats import binom

from aclnn_bindings.install.library import bundled_simulator

simulated = pytest.mark.skipif(bundled_simulator() is None, reason="the simulator is not built")


def told_of(results):
    """The speeds of results' places, each paired with whether all devices had the same cases."""
    tally = Tally()
    for one, same in results:
        tally.add(one.as_json(), tally.device(one.node, one.device), same)
    return {(tally.stats[i].node, tally.stats[i].device): s
            for i, s in speed.speeds(tally.times).items()}  # fmt: skip


def timed(node, work, seed, least):
    times = {"device": {"median": 2 * least, "least": least}}
    return result(f"{work}/bench/float32/8x8", node=node, device="npu:0", seed=seed,
                  measure={"times": times})  # fmt: skip


def fleet(rng, devices, works=4, rounds=5, slow=1.0, chips=0.01):
    """Times with long tails upwards; chips differ by `chips`, the last device is `slow`."""
    own = rng.normal(1, chips, devices)
    own[-1] *= slow
    noise = 1 + rng.exponential(0.03, (works, rounds, devices))
    return [
        (timed(f"host{d}", f"op{w}", r, float(100 * (w + 1) * own[d] * noise[w, r, d])), True)
        for w in range(works) for r in range(rounds) for d in range(devices)
    ]  # fmt: skip


@pytest.mark.parametrize("n", [1, 6, 7, 20, 333, 5000])
@pytest.mark.parametrize("tail", [0.01, 0.01 / 8, 0.01 / 8000])
def test_ranks_are_those_of_the_binomial_law(n, tail):
    k = speed.rank(n, tail)
    assert binom.cdf(k - 1, n, 0.5) <= tail if k else True
    assert binom.cdf(k, n, 0.5) > tail


@pytest.mark.parametrize("devices", [3, 8, 64])
def test_healthy_fleets_are_named_in_at_most_one_report_of_100(devices):
    rng = np.random.default_rng(devices)
    reports = 30 if devices == 64 else 200
    named = sum(any(s.slow for s in told_of(fleet(rng, devices)).values()) for _ in range(reports))
    assert named <= reports // 100


def test_at_the_margin_the_alarm_is_as_rare_as_stated():
    """A device as far above the others as the margin allows, and not further: the hardest case."""
    rng = np.random.default_rng(1)
    named = 0
    for _ in range(400):
        ratios = {("h", str(d)): 1 + rng.normal(0, 0.02, 20) for d in range(7)}
        ratios["h", "7"] = 1.05 + rng.normal(0, 0.02, 20)
        named += any(s.slow for s in speed._speeds(ratios, "bench").values())
    assert named <= 8  # 400 times 1 %, and twice that for chance


@pytest.mark.parametrize("slow", [1.15, 2.0])
def test_slow_device_is_named_and_it_alone(slow):
    told = told_of(fleet(np.random.default_rng(0), 8, slow=slow))
    assert [place for place, s in told.items() if s.slow] == [("host7", "npu:0")]
    last = told["host7", "npu:0"]
    assert last.low <= last.median <= last.high
    assert last.median == pytest.approx(slow, rel=0.05)


def test_of_two_devices_none_is_called_the_slow_one():
    told = told_of(fleet(np.random.default_rng(0), 2, slow=3.0))
    assert not any(s.slow or s.enough for s in told.values())


def disturbed(rng, rounds, slow):
    """Ratios of four devices whose times a crowded host varies by a third, both ways."""
    own = np.array([1.0, 1.0, 1.0, slow])
    times = own * np.exp(rng.normal(0, 0.3, (rounds, 4))) * (1 + rng.exponential(0.3, (rounds, 4)))
    told = times / np.median(times, axis=1, keepdims=True)
    return {("h", str(d)): told[:, d].tolist() for d in range(4)}


@pytest.mark.parametrize(("slow", "least", "most"), [(1.0, 0, 2), (2.0, 140, 200), (4.0, 200, 200)])
def test_a_crowded_host_hides_no_slow_device_and_makes_none(slow, least, most):
    """What chance adds to devices' medians is not taken for chips that differ: with it in the
    limit, a device of twice the time was named in 128 reports of 200, without in 148."""
    rng = np.random.default_rng(4)
    reports = [speed._speeds(disturbed(rng, 48, slow), "bench") for _ in range(200)]
    named = [[place for place, s in told.items() if s.slow] for told in reports]
    assert least <= named.count([("h", "3")]) <= most
    assert sum(bool(set(n) - {("h", "3")}) for n in named) <= 2


def test_few_times_give_no_interval():
    told = told_of(fleet(np.random.default_rng(0), 8, works=1, rounds=3, slow=9.0))
    assert not any(s.enough for s in told.values())


def test_chips_that_differ_widely_are_no_outliers():
    rng = np.random.default_rng(3)
    for _ in range(5):
        told = told_of(fleet(rng, 64, chips=0.15))
        assert not any(s.slow for s in told.values())
        assert max(s.limit for s in told.values()) > 1.2


def test_workloads_decide_where_a_device_has_both():
    rng = np.random.default_rng(0)
    cases = [(result(f"add/functional/s{i}", node=f"host{d}", device="npu:0",
                     seconds=9.0 if d == 0 else 1.0), True)
             for i in range(40) for d in range(8)]  # fmt: skip
    told = told_of([*fleet(rng, 8), *cases])
    assert {s.of for s in told.values()} == {"bench"}
    assert not any(s.slow for s in told.values())
    assert [p for p, s in told_of(cases).items() if s.slow] == [("host0", "npu:0")]


def test_of_many_times_the_same_cases_of_every_device_are_a_sample():
    times = speed.Times(limit=1000)
    for case in range(4000):
        for device in range(4):
            times.add(False, case, 0, case * 2654435761 & 0xFFFFFFFF, device, 1.0 + (device == 2))
    ratios = times.ratios()["check"]
    assert {len(own) for own in ratios.values()} == {len(ratios[0])}
    assert 400 <= 4 * len(ratios[0]) <= 1000
    assert set(ratios[2]) == {2.0}
