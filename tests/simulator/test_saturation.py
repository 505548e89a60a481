"""aclrtSetDeviceSatMode: which mode a product has, and what float16 results become in each."""

import os
import subprocess
import sys
import textwrap

import pytest

from aclnn_bindings.install.library import bundled_simulator

pytestmark = pytest.mark.skipif(bundled_simulator() is None, reason="the simulator is not built")

SETTING = """
import aclnn_bindings
cann = aclnn_bindings.open(simulator=True)
cann.runtime.start()
for name in ("INFNAN", "SATURATION"):
    mode = cann.runtime.constant("ACL_RT_OVERFLOW_MODE_" + name, -1)
    try:
        cann.function("aclrtSetDeviceSatMode")(mode)
        print(0)
    except Exception as error:
        print(error.code)
"""
RESULTS = """
import mindtorch as torch
big = torch.full((2, 2), 60000.0, dtype=torch.float16, device="npu")
odd = torch.tensor([float("-inf"), float("nan")], dtype=torch.float16).to("npu")
wide = torch.tensor([1e38, 1e38], device="npu")
for t in (big + big, odd * 1, torch.cat([odd, odd]), wide.half(), wide * 1e38, wide.bfloat16() * 9):
    print(t.reshape(-1)[:2].tolist())
"""


def run(program: str, **environ: str) -> list[str]:
    child = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environ},
    )
    return child.stdout.splitlines()


@pytest.mark.parametrize(
    ("soc", "codes"),
    [
        ("Ascend910B2", ["0", "0"]),
        ("Ascend910_9392", ["0", "0"]),
        ("Ascend950PR_9599", ["0", "207000"]),
        ("Ascend310P3", ["207000", "0"]),
        ("Ascend910A", ["207000", "0"]),
    ],
)
def test_a_mode_that_the_product_lacks_is_refused(soc, codes):
    assert run(SETTING, ACLSIM_SOC=soc) == codes


INFINITIES = ["[inf, inf]", "[-inf, nan]", "[-inf, nan]", "[inf, inf]", "[inf, inf]", "[inf, inf]"]
# What is moved stays as it is, and so do results in float32.
SATURATED = [
    "[65504.0, 65504.0]",
    "[-65504.0, 0.0]",
    "[-inf, nan]",
    "[65504.0, 65504.0]",
    "[inf, inf]",
    "[3.3895313892515355e+38, 3.3895313892515355e+38]",
]


@pytest.mark.parametrize(
    ("asked", "results"), [("1", INFINITIES), ("0", SATURATED)], ids=["inf/nan", "saturation"]
)
def test_results_out_of_range_are_what_the_mode_says(asked, results):
    assert run(RESULTS, ACLSIM_SOC="Ascend910B2", INF_NAN_MODE_ENABLE=asked) == results


def test_a_310p_saturates_whatever_is_asked():
    program = RESULTS.replace(", wide.bfloat16() * 9", "")
    assert run(program, ACLSIM_SOC="Ascend310P3", INF_NAN_MODE_ENABLE="1") == SATURATED[:5]
