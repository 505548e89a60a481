"""Runs a library's own tests on torch and on mindtorch, and compares test by test.

    python tests/software/suites.py NAME FOLDER --python SOFTWARE/bin/python --out OUT [PYTEST ...]

FOLDER is a checkout of the library's sources, or of its tests alone; SOFTWARE is the virtual
environment of requirements.txt with what the tests ask for beside. Nothing is patched and no test
left out: a test that passes on torch passes on mindtorch, or it is listed. A run that was cut
goes on where it stopped, --again runs what was lost once more, and files of OUT that are removed
are made again. Exit code: 0 where the share that passes is at least --share, else 1.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from verdicts import told

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SITE = ROOT / "mindtorch" / "_compat" / "torch_shim" / "site"


@dataclass(frozen=True)
class Suite:
    """Which tests of a checkout are run, and what they want to be told."""

    tests: tuple[str, ...]
    options: tuple[str, ...] = ()
    environ: dict[str, str] = field(default_factory=dict)
    on_device: dict[str, str] = field(default_factory=dict)  # {} stands for the device's name


FAMILIES = ("llama", "gpt2", "bert", "t5", "vit", "whisper", "qwen2", "mistral", "clip")
# Their conftest.py sets what torch 2.13 then refuses to read: tests/ is read without it.
TRANSFORMERS = {
    "options": ("--confcutdir=tests",),
    "on_device": {"TRANSFORMERS_TEST_DEVICE": "{}"},
}
UNITTESTS = ("-o", "python_files=*test*.py")  # torchdiffeq: *_tests.py
SUITES = {
    "transformers": Suite(
        tuple(f"tests/models/{name}/test_modeling_{name}.py" for name in FAMILIES), **TRANSFORMERS
    ),
    "generation": Suite(("tests/generation",), **TRANSFORMERS),
    "trainer": Suite(("tests/trainer", "tests/optimization"), **TRANSFORMERS),
    "einops": Suite(("einops/tests",), environ={"EINOPS_TEST_BACKENDS": "numpy,torch"}),
    "safetensors": Suite(  # of bindings/python
        ("tests/test_pt_comparison.py", "tests/test_pt_model.py", "tests/test_simple.py",
         "tests/test_threadable.py", "tests/test_handle.py", "tests/test_multithreaded.py"),
    ),
    "array-api": Suite(
        ("array_api_tests",),
        ("--max-examples", "20", "--derandomize", "--disable-deadline"),
        {"ARRAY_API_TESTS_MODULE": "array_api_compat.torch"},
    ),
    "peft": Suite(("tests",)),
    "accelerate": Suite(("tests",), on_device={"ACCELERATE_TORCH_DEVICE": "{}"}),
    "torchmetrics": Suite(("tests/unittests",)),
    "x-transformers": Suite(("tests",)),
    "diffusers": Suite(("tests/schedulers", "tests/models")),
    "linear_operator": Suite(("test/functions", "test/operators", "test/utils"), UNITTESTS),
    "gpytorch": Suite(("test",), UNITTESTS),
    "zuko": Suite(("tests",)),
    "geoopt": Suite(("tests",)),
    "kornia": Suite(("tests",)),
    "pyro": Suite(("tests/distributions", "tests/ops", "tests/nn", "tests/poutine")),
    "tensordict": Suite(("test",)),
    "torchdiffeq": Suite(("tests",)),
    "captum": Suite(("tests",), UNITTESTS),
    "e3nn": Suite(("tests",)),
    "torch_geometric": Suite(("test",)),
    "opacus": Suite(("opacus/tests",), UNITTESTS),
    "pytorch_optimizer": Suite(("tests",)),
    "pytorch-metric-learning": Suite(("tests",)),
    "skorch": Suite(("skorch/tests",)),
    "botorch": Suite(("test",)),
}  # fmt: skip


def environ_of(suite, side, device, python, file):
    environ = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", **suite.environ}
    paths = [str(HERE), *filter(None, environ.get("PYTHONPATH", "").split(os.pathsep))]
    if side == "mindtorch":
        paths = [str(SITE), str(ROOT), *paths]
        if device != "cpu":
            environ["MINDTORCH_TORCH_NPU"] = "1"  # as `mindtorch-npu exec --npu` says it
            environ |= {name: form.format(device) for name, form in suite.on_device.items()}
    environ["PYTHONPATH"] = os.pathsep.join(paths)
    environ["PATH"] = os.pathsep.join((str(Path(python).absolute().parent), os.environ["PATH"]))
    return {**environ, "VERDICTS": str(file)}


def run(suite, side, args, file):
    """Runs until no test ends the process; one that did is not tried again."""
    tests = args.tests.split(",") if args.tests else suite.tests
    command = [args.python, "-m", "pytest", "-q", "-p", "verdicts", "-p", "no:cacheprovider",
               f"--timeout={args.timeout}", *suite.options, *args.pytest, *tests]  # fmt: skip
    environ = environ_of(suite, side, args.device, args.python, file)
    with file.with_suffix(".log").open("a") as log:
        while True:
            before = deaths(file)
            subprocess.run(command, cwd=args.folder, env=environ, stdout=log, stderr=log)
            if deaths(file) <= before:
                return


def deaths(file):
    """How many tests ended their process."""
    return sum(verdict == "died" for verdict, _ in told(file).values())


def compare(theirs, ours):
    """Tests that pass on torch and not on mindtorch, with what was said there."""
    passing = [test for test, (verdict, _) in theirs.items() if verdict == "passed"]
    lost = {t: ours.get(t, ("absent", "")) for t in passing if ours.get(t, "x")[0] != "passed"}
    return passing, lost


def forget_lost(files):
    """Drops what was said of lost tests, so that they are run again."""
    _, lost = compare(told(files["torch"]), told(files["mindtorch"]))
    lines = files["mindtorch"].read_text().splitlines(keepends=True)
    kept = [line for line in lines if json.loads(line)["test"] not in lost]
    files["mindtorch"].write_text("".join(kept))


def show(name, theirs, ours, share):
    passing, lost = compare(theirs, ours)
    for test, (verdict, error) in sorted(lost.items()):
        print(f"{verdict:8} {test}\n         {error.splitlines()[0] if error else ''}")
    for side, verdicts in (("torch", theirs), ("mindtorch", ours)):
        print(f"{side}: {dict(Counter(verdict for verdict, _ in verdicts.values()))}")
    kept = len(passing) - len(lost)
    part = kept / len(passing) if passing else 0.0
    print(f"{name}: {kept} of {len(passing)} that pass on torch pass on mindtorch ({part:.2%})")
    return part >= share


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=SUITES)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--out", type=Path, required=True, help="folder of verdicts and logs")
    parser.add_argument("--device", default="cpu", help="of mindtorch, where the suite can choose")
    parser.add_argument("--side", choices=("torch", "mindtorch"), help="run this side alone")
    parser.add_argument("--again", action="store_true", help="run what was lost once more")
    parser.add_argument("--tests", help="instead of the suite's own, comma-separated")
    parser.add_argument("--timeout", type=int, default=120, help="seconds a test")
    parser.add_argument("--share", type=float, default=0.98)
    args, args.pytest = parser.parse_known_args()
    args.out = args.out.resolve()
    args.out.mkdir(parents=True, exist_ok=True)
    suite, files = SUITES[args.name], {}
    for side in ("torch", "mindtorch"):
        name = f"{args.name}.{side}" + (f".{args.device}" if side == "mindtorch" else "")
        files[side] = args.out / f"{name}.jsonl"
    if args.again:
        forget_lost(files)
    for side in files:
        if args.side in (None, side):
            run(suite, side, args, files[side])
    if args.side:
        return 0
    return 0 if show(args.name, told(files["torch"]), told(files["mindtorch"]), args.share) else 1


if __name__ == "__main__":
    sys.exit(main())
