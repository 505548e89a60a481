"""Commands that judge, given references that are wrong: none passes, none blames the device."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.c_packages import package

SPEC = """
import os
from mindtorch_npu.spec import Rule, out, spec, tensor

@spec("aclnnProduct", Rule("rounded", "this file", strided=False),
      x=tensor("*S", "f32"), y=tensor("*S", "x"), out=out("x", "*S"))
def product(x, y):
    {body}
"""
BODIES = {
    "raises": ("raise ValueError('no idea')", "ValueError: no idea ("),
    "ends": ("os._exit(0)", "the worker process ended by exit code 0, inside of it"),
    "loops": ("while True: pass", "NoAnswerError: no answer within"),
    "shape": ("return (x * y).reshape(-1)[:1]", "the shape [1], and the declaration says"),
    "counts": ("return x, y", "it gives 2 results, the header has 1"),
}
RUNS = [(name, "check") for name in BODIES]
RUNS += [("raises", "bench"), ("shape", "bench"), ("raises", "replay"), ("shape", "replay")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("references")
    package(folder / "mine")
    for name, (body, _) in BODIES.items():
        (folder / f"{name}.py").write_text(SPEC.format(body=body))
    (folder / "wrong.py").write_text(SPEC.format(body="return x * y + 1"))
    return folder


def run(folder: Path, name: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mindtorch_npu", *words, "--simulator", "--golden",
               f"{name}.py"]  # fmt: skip
    environ = {**os.environ, "ASCEND_CUSTOM_OPP_PATH": str(folder / "mine"), "COLUMNS": "400"}
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True,
                          check=False)  # fmt: skip


@pytest.fixture(scope="module")
def saved(folder) -> Path:
    """A case that failed with a reference that another one replaces."""
    case = "aclnnProduct/functional/*S=2x3/dtype=float32"
    done = run(folder, "wrong", "check", "--case", case, "--save", "cases")
    assert done.returncode == 1, done.stdout + done.stderr
    return next((folder / "cases").glob("*.json"))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "mode"), RUNS)
def test_the_reference_is_named_and_nothing_is_judged(folder, name, mode, request):
    words = {
        "check": lambda: ("check", "--case", "aclnnProduct/functional/*S=2x3/dtype=float32",
                          "--timeout", "2", "--json", f"{name}.json"),
        "bench": lambda: ("bench", "aclnnProduct", "--seconds", "0.05"),
        "replay": lambda: ("check", "replay", str(request.getfixturevalue("saved"))),
    }[mode]()  # fmt: skip
    done = run(folder, name, *words)
    text = done.stdout + done.stderr
    assert done.returncode == 5, text
    assert "error of the reference: " in text
    assert BODIES[name][1] in text
    assert not {"FAIL", "CRASH", "HANG", "Causes"} & set(text.split())
    if mode == "check":
        (result,) = json.loads((folder / f"{name}.json").read_text())["results"]
        assert (result["verdict"], result["blame"]) == ("ERROR", "reference")


def test_a_bisect_passes_by_what_the_reference_cannot_judge(folder):
    done = run(folder, "raises", "check", "aclnnProduct", "--git-bisect")
    assert done.returncode == 125, done.stdout + done.stderr
    assert "error of the reference: ValueError: no idea" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import no_such_package\n", "No module named 'no_such_package'"),
        ("def aclnnProduct(x, y) return x\n", "SyntaxError"),
        ("import sys\nsys.exit(0)\n", "SystemExit"),
        ("def aclnnProduct(x, wrong): return x\n", "takes 'wrong', which the header does not have"),
        ("x = 1\n", "declares no reference"),
    ],
)
def test_a_file_that_is_no_reference_is_a_usage_error(folder, text, says):
    (folder / "broken.py").write_text(text)
    done = run(folder, "broken", "check", "aclnnProduct")
    assert done.returncode == 2, done.stdout + done.stderr
    assert says in done.stderr
