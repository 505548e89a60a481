"""cubeMathType on each product: what 32-bit factors become, and which modes are refused."""

import os
import subprocess
import sys

import numpy as np
import pytest

from aclnn_bindings import bundled_simulator

pytestmark = pytest.mark.skipif(bundled_simulator() is None, reason="no simulator was built")

PROFILES = {"910b": "Ascend910B2", "310p": "Ascend310P3", "910": "Ascend910A"}
# In a child, as the product is chosen once a process: a line per mode, the result or the code.
CHILD = """
import sys
import numpy as np
import aclnn_bindings
from aclnn_bindings.runtime.status import AclError

cann = aclnn_bindings.open(simulator=True)
dtype = sys.argv[1]
for value in (1 + 2.0**-13, 1 + 2.0**-10, 70000.0):
    for mode in range(6):
        a = cann.tensor(np.array([[value]], np.float32).astype(dtype))
        one = cann.tensor(np.ones((1, 1), dtype))
        out = cann.empty((1, 1), a.spec.dtype)
        try:
            cann.ops.aclnnMm(a, one, out, mode)
            print(value, mode, float(out.numpy()[0, 0]))
        except AclError as error:
            print(value, mode, error.code)
"""


def products(product: str, dtype: str = "float32") -> dict[tuple[float, int], float]:
    """(factor, mode) -> the product of the factor and 1, or the code that refuses it."""
    child = subprocess.run(
        [sys.executable, "-c", CHILD, dtype], capture_output=True, text=True, check=True,
        env={**os.environ, "ACLSIM_SOC": PROFILES[product]},
    )  # fmt: skip
    rows = [[float(word) for word in line.split()] for line in child.stdout.splitlines()]
    return {(value, int(mode)): answer for value, mode, answer in rows}


FINE, COARSE, LARGE = 1 + 2.0**-13, 1 + 2.0**-10, 70000.0


def test_a2_rounds_float32_to_hf32_where_it_may_and_keeps_it_otherwise() -> None:
    answers = products("910b")
    assert [answers[FINE, mode] for mode in range(6)] == [FINE, 1.0, 1.0, 1.0, FINE, 161002]
    assert [answers[COARSE, mode] for mode in (0, 1, 3)] == [COARSE] * 3
    # HFLOAT32 has the exponents of float32, float16 has not.
    assert (answers[LARGE, 1], answers[LARGE, 2]) == (70016.0, np.inf)


@pytest.mark.parametrize("product", ["310p", "910"])
def test_products_without_float32_in_the_matrix_unit_refuse_it_or_use_float16(
    product: str,
) -> None:
    answers = products(product)
    assert [answers[FINE, mode] for mode in (0, 1, 2, 3)] == [161002, 1.0, 1.0, 161002]
    # These products have no infinities in float16 (aclrtFloatOverflowMode document, CANN 9.1).
    assert answers[LARGE, 1] == 65504.0


def test_float16_is_left_alone_and_has_no_hf32() -> None:
    answers = products("910b", "float16")
    assert [answers[COARSE, mode] for mode in range(4)] == [COARSE, COARSE, COARSE, 161002]
