"""16-bit results out of range are judged by what the device's overflow mode makes of them."""

import numpy as np
import pytest
from mindtorch_npu.conformance.run import modes
from mindtorch_npu.conformance.run.environment import modes as words

EXPECTED = np.array([1e6, -1e6, np.inf, np.nan, 2.0])
SATURATED = np.array([65504, -65504, 65504, 0, 2], np.float16)


def judged(got: np.ndarray, monkeypatch: pytest.MonkeyPatch, saturates: bool) -> np.ndarray:
    monkeypatch.setattr(modes, "_saturates", lambda _: saturates)
    return modes.in_overflow_mode(got, EXPECTED, "float16", "npu:0")


def test_saturated_results_are_right_in_saturation_alone(monkeypatch):
    assert judged(SATURATED, monkeypatch, True).tolist() == SATURATED.tolist()
    np.testing.assert_array_equal(judged(SATURATED, monkeypatch, False), EXPECTED)


def test_what_saturation_does_not_give_stays_wrong(monkeypatch):
    others = np.array([-65504, 65504, 65472, 1, 3], np.float16)
    np.testing.assert_array_equal(judged(others, monkeypatch, True), EXPECTED)


@pytest.mark.parametrize(
    ("soc", "asked", "overflow"),
    [
        ("Ascend910B2", "1", "gives Inf"),
        ("Ascend910B2", "0", "saturates"),
        ("Ascend310P3", "1", "saturates"),
        ("Ascend950PR_9599", "0", "gives Inf"),
    ],
)
def test_a_product_without_a_mode_keeps_its_own(monkeypatch, soc, asked, overflow):
    monkeypatch.setenv("INF_NAN_MODE_ENABLE", asked)
    assert words(soc)["overflow"] == overflow
