"""Element types and operators that the default product lacks, in children with other profiles."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernel_harness import Out as TorchOut
from numpy_harness import Ops, Out, Raw, code, e4m3, e5m2
from products import INSIDE, PROFILES, on

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")

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


@on("950")
def test_dropout_v3_keeps_and_scales_what_its_mask_says(sim: Any) -> None:
    x, mask = torch.ones(1000), torch.zeros(128, dtype=torch.uint8)
    out, bits = (
        r[0] for r in sim.run("aclnnDropoutV3", x, None, 0.25, 1, 0, TorchOut(x), TorchOut(mask))
    )
    kept = torch.tensor([bool(bits[i // 8] >> (i % 8) & 1) for i in range(1000)])
    assert abs(float(kept.float().mean()) - 0.75) < 0.05
    assert torch.equal(out, kept / 0.75)
    sim.check("aclnnDropoutV3Grad", x, bits, 2.0, TorchOut(kept * 2.0))


@on("950")
@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_copies_convert_eight_bit_floats(nops: Ops, name: str) -> None:
    x, small = np.array([1.0, -2.0, 0.375, 24.0], "float32"), np.dtype(name)
    (made,) = nops("aclnnInplaceCopy", Out(x.shape, small, np.zeros(4, small)), x)
    np.testing.assert_array_equal(made, x.astype(small))
    for dtype in (small, "float16", "float32"):
        like = np.zeros(4, dtype)
        (back,) = nops("aclnnInplaceCopy", Out(x.shape, dtype, like), x.astype(small))
        np.testing.assert_array_equal(back.astype("float32"), x)


@on("950")
def test_strided_slices_follow_their_masks(sim: Any) -> None:
    x = torch.arange(120).view(2, 3, 4, 5)

    def masks(begin: int = 0, end: int = 0, dots: int = 0, new: int = 0, drop: int = 0) -> Any:
        return begin, end, dots, new, drop

    for begin, end, strides, mask, expected in (
        ((0, 1, 0, 4), (2, 3, 4, 0), (1, 1, 2, 1), masks(drop=8), x[0:2, 1:3, 0:4:2, 4]),
        ((0, 3), (0, 0), (1, -1), masks(end=2, dots=1), x[..., [3, 2, 1, 0]]),
        ((1, 0, 1), (0, 0, 3), (1, 1, 1), masks(new=2, drop=1), x[1][None, 1:3]),
        ((-1, 2), (0, 9), (-1, 1), masks(end=1), x.flip(0)[:, 2:]),
        ((0, 2), (2, 1), (1, 1), masks(), x[0:2, 2:1]),
    ):
        sim.check(
            "aclnnStridedSlice", x, begin, end, strides, *mask, TorchOut(expected.contiguous())
        )


@on("310P")
def test_images_are_laid_over_each_other(sim: Any) -> None:
    g = torch.Generator().manual_seed(0)
    a, b = torch.randint(0, 256, (2, 4, 5, 3), generator=g).unbind()
    alpha = torch.randint(0, 256, (4, 5, 1), generator=g)
    blended = (a * alpha + b * (255 - alpha)) // 255
    byte = torch.uint8
    sim.check("aclnnMrgbaCustom", a.to(byte), alpha.to(byte), TorchOut((a * alpha // 255).to(byte)))
    sim.check(
        "aclnnBlendImagesCustom", a.to(byte), alpha.to(byte), b.to(byte), TorchOut(blended.to(byte))
    )
    mask = (alpha > 100).half()
    replaced = torch.where(mask > 0, b, a).to(byte)
    sim.check("aclnnBackgroundReplace", a.to(byte), b.to(byte), mask, TorchOut(replaced))
