"""`bench --against vendor:DIR` and `--against aclnnOther`, on two builds of a package of C."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from mindtorch_npu.commands.bench.builds import rival_build
from mindtorch_npu.commands.bench.rivals import NoRivalError
from mindtorch_npu.commands.bench.verdict import paired

from tests.cli.c_packages import package

GOLDEN = "def aclnnProduct(x, y):\n    return x * y\n"


@pytest.fixture(scope="module")
def builds(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("builds")
    package(folder / "fast", 1)
    package(folder / "slow", 40)
    (folder / "golden.py").write_text(GOLDEN)
    return folder


def bench(folder: Path, ours: str, against: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mindtorch_npu", "bench", "aclnnProduct", "--simulator",
               "--golden", "golden.py", "--shapes", "128x64", "--dtype", "float32",
               "--seconds", "0.05", "--against", against, *words]  # fmt: skip
    environ = {**os.environ, "ASCEND_CUSTOM_OPP_PATH": str(folder / ours)}
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True,
                          check=False)  # fmt: skip


def test_slower_build_is_bad_for_a_bisect_and_never_faster(builds):
    done = bench(builds, "slow", "vendor:fast", "--git-bisect", "--json", "times.json")
    (row,) = json.loads((builds / "times.json").read_text())["results"]
    words = {kind: verdict["verdict"] for kind, verdict in row["verdicts"].items()}
    device = row["verdicts"]["device"]
    assert device["ratio"] > 2
    assert device["low"] < device["ratio"] < device["high"]
    assert "FASTER" not in words.values()
    # On a machine that others load, an interval may be too wide for a word.
    code, word = (1, "bad") if "SLOWER" in words.values() else (125, "skip")
    assert done.returncode == code, done.stdout + done.stderr
    assert f"git bisect: {word} ({code}): aclnnProduct float32 128x64,128x64: " in done.stderr
    assert re.search(r"against vendor:fast \(sha256 [0-9a-f]{12}\): ", done.stdout)


def test_another_operator_is_timed_with_the_same_arguments(builds):
    done = bench(builds, "fast", "aclnnSlowProduct", "--host", "--fail-on", "slower")
    assert "host" in done.stdout
    assert done.returncode in (0, 4), done.stdout + done.stderr
    assert "against aclnnSlowProduct: 1 " in done.stdout


def test_what_computes_something_else_is_not_compared(builds):
    done = bench(builds, "fast", "aclnnProductOfSums")
    assert done.returncode == 5
    assert (
        "not judged: aclnnProduct float32 128x64,128x64: aclnnProductOfSums: wrong result"
        in done.stderr
    )
    with pytest.raises(NoRivalError, match=r"--against vendor:nowhere: .*nowhere does not exist"):
        rival_build("vendor:nowhere")


def test_chance_makes_a_verdict_once_in_a_thousand_runs_at_most():
    draw = np.random.default_rng(5)
    runs, words = 4000, []
    for _ in range(runs):
        noise = np.exp(draw.normal(0, 0.05, (2, 6, 2)))
        words.append(paired([[(a, b) for a, b in rounds] for rounds in noise]).word)
    assert words.count("FASTER") + words.count("SLOWER") <= 4
    shifted = np.exp(draw.normal(0, 0.005, (100, 2, 6, 2)))
    shifted[..., 0] *= 1.1
    assert [paired([[(a, b) for a, b in r] for r in one]).word for one in shifted] == (
        ["SLOWER"] * 100
    )
    calm = np.exp(draw.normal(0, 1e-4, (2, 6, 2)))
    assert paired([[(a, b) for a, b in rounds] for rounds in calm]).word == "SAME"
