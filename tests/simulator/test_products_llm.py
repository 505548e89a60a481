"""Element types and operators that the default product lacks, in children with other profiles."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy_harness import Ops, Out, Raw, code, e4m3, e5m2
from products import INSIDE, PROFILES, on

RNG = np.random.default_rng(5)


HERE = Path(__file__).parent
FILES = sorted(str(f) for f in HERE.rglob("test_*.py") if "from products import" in f.read_text())


@pytest.mark.skipif(INSIDE in PROFILES, reason="this is a child")
@pytest.mark.parametrize("profile", PROFILES)
def test_operators_of_other_products_pass_in_a_child(profile: str) -> None:
    environment = {**os.environ, "ACLSIM_SOC": profile}
    command = [sys.executable, "-m", "pytest", "-o", "addopts=", "-m", "product", *FILES]
    child = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stdout[-3000:]
    assert " passed" in child.stdout


@on("950")
@pytest.mark.parametrize("narrow", [e4m3, e5m2])
def test_float8_casts_equal_ml_dtypes(nops: Ops, narrow: np.dtype) -> None:
    x = np.concatenate([RNG.standard_normal(400) * 100, [0, 1e6, np.inf, 464, 61440, 2**-9]])
    x = x.astype(np.float32)
    (made,) = nops("aclnnCast", x, code(narrow), Out(x.shape, narrow))
    np.testing.assert_array_equal(made.view(np.uint8), x.astype(narrow).view(np.uint8))
    codes = np.arange(256, dtype=np.uint8).view(narrow)
    (back,) = nops("aclnnCast", codes, 0, Out(codes.shape))
    np.testing.assert_array_equal(back, codes.astype(np.float32))


@on("950")
def test_hifloat8_decodes_the_papers_examples(nops: Ops) -> None:
    # arXiv 2409.16626, table 2: zero, smallest, largest, infinity, one, and a denormal step.
    codes = np.array([0x00, 0x01, 0x6E, 0x6F, 0x08, 0x07, 0x80, 0xEE, 0xFE, 0x18], np.uint8)
    (back,) = nops("aclnnCast", Raw(codes), 0, Out(codes.shape))
    expected = [0, 2**-22, 2**15, np.inf, 1, 2**-16, np.nan, -(2**15), -(2**-15), 0.5]
    np.testing.assert_array_equal(back, np.array(expected, np.float32))


@on("950")
def test_float8_outputs_saturate(nops: Ops) -> None:
    x = np.array([[1.0, -1000.0, 0.3]], np.float32)
    (y,) = nops("aclnnQuantize", x, np.ones(1, np.float32), None, code(e4m3), 1, Out(x.shape, e4m3))
    np.testing.assert_array_equal(y.astype(np.float32), [[1, -448, 0.3125]])


@on("910_93")
def test_expert_replicas_and_pruning(nops: Ops) -> None:
    ids = np.array([[0, 1], [1, 0], [0, 1]], np.int32)
    chart = np.array([[1, 7, 0], [2, 3, 5]], np.int32)
    scales = np.array([[0.6, 0.4], [0.9, 0.1], [0.5, 0.5]], np.float32)
    least, active = np.array([0.2, 0.2], np.float32), np.array([1, 1, 0], bool)
    new, mask = nops(
        "aclnnMoeUpdateExpert",
        [ids, chart, scales, least, active],
        [0, 4, 1],
        [Out(ids.shape, "int32"), Out(ids.shape, "bool")],
    )
    np.testing.assert_array_equal(new, [[7, 3], [5, 7], [7, 3]])
    np.testing.assert_array_equal(mask, [[1, 1], [1, 0], [0, 0]])
