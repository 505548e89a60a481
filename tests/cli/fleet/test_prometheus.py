"""Metrics are what Prometheus' own parser takes, by its conventions."""

import re

import pytest
from journals import ENVIRONMENT, result, write
from mindtorch_npu.fleet import merge, prometheus
from prometheus_client.parser import text_string_to_metric_families

CASES = [f"add/functional/s{i}" for i in range(3)]
HEALTH = {"temperature (C)": 39, "power (W)": 103.5, "HBM usage (%)": 5,
          "hbm double bit error count": 2, "state": "OK"}  # fmt: skip


@pytest.fixture
def families(tmp_path):
    """Two hosts of two devices, one device of which differs; a name that needs escapes."""
    paths = [
        write(tmp_path / f"{n}.jsonl", node,
              [result(c, device=f"npu:{d}", digest="bb" if (n, d) == (1, 1) else "aa", seconds=0.5)
               for c in CASES for d in range(2)], compare=True,
              environment={"chips": {"npu:0": {"serial": f"s{n}", "health": HEALTH}}})
        for n, node in enumerate(("host0", 'ho"st\\1'))
    ]  # fmt: skip
    text = prometheus.text(merge.merge(paths))
    return {f.name: f for f in text_string_to_metric_families(text)}


def samples(families, name, **labels):
    return [s.value for s in families[name].samples
            if all(s.labels[k] == v for k, v in labels.items())]  # fmt: skip


def test_names_follow_the_conventions(families):
    for family in families.values():
        assert re.fullmatch("mindtorch_npu_[a-z_]+", family.name)
        assert family.documentation.endswith(".")
        for sample in family.samples:
            assert sample.name.endswith("_total") == (family.type == "counter")
            assert not set(sample.labels) & {"le", "quantile", "job", "instance"}
    for name in (
        "check_duration_seconds",
        "run_duration_seconds",
        "fleet_merged_timestamp_seconds",
    ):
        assert f"mindtorch_npu_{name}" in families


def test_healthy_devices_have_series_of_zeros(families):
    values = samples(families, "mindtorch_npu_device_deviations", node="host0")
    assert len(values) == 14
    assert not any(values)
    assert samples(families, "mindtorch_npu_check_failures", node="host0") == [0.0, 0.0]
    assert sum(samples(families, "mindtorch_npu_device_deviations", device="npu:1")) == 3
    assert samples(families, "mindtorch_npu_device_advice", device="npu:1", node='ho"st\\1') == [
        0.0, 1.0, 0.0
    ]  # fmt: skip


def test_versions_and_chips_are_labels_of_ones(families):
    (build,) = families["mindtorch_npu_build_info"].samples
    assert (build.labels["version"], build.value) == (ENVIRONMENT["mindtorch_npu"], 1.0)
    serials = {s.labels["serial"] for s in families["mindtorch_npu_device_info"].samples}
    assert serials == {"s0", "s1", ""}


def test_health_of_chips_has_base_units_and_only_where_it_is_known(families):
    chip = {"node": "host0", "device": "npu:0"}
    names = ("temperature_celsius", "power_watts", "hbm_used_ratio")
    values = [samples(families, f"mindtorch_npu_device_{name}", **chip) for name in names]
    assert values == [[39.0], [103.5], [0.05]]
    errors = families["mindtorch_npu_device_memory_errors"].samples
    assert {s.labels["device"] for s in errors} == {"npu:0"}
    assert {(s.labels["counter"], s.value) for s in errors} == {("hbm double bit error count", 2)}


def test_large_numbers_and_times_keep_their_digits(tmp_path, monkeypatch):
    """Times were rounded to six digits, which is 40 minutes, and counts from a million on."""
    monkeypatch.setattr(prometheus.time, "time", lambda: 1795823456.789)
    fleet = merge.merge([write(tmp_path / "a.jsonl", "host1", [result(CASES[0], device="npu:0")])])
    fleet.devices[0].counts.by_verdict["PASS"] = 12_345_678
    families = {f.name: f for f in text_string_to_metric_families(prometheus.text(fleet))}
    assert samples(families, "mindtorch_npu_fleet_merged_timestamp_seconds") == [1795823456.789]
    assert samples(families, "mindtorch_npu_check_results", verdict="PASS") == [12_345_678.0]
