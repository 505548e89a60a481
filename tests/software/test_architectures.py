"""Architectures of transformers give what they give on torch: construct to half precision.

Needs $MINDTORCH_SOFTWARE, a Python with torch and requirements.txt. Run with -m software.
"""

import os
import subprocess
from pathlib import Path

import compare
import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PYTHON = os.environ.get("MINDTORCH_SOFTWARE")

pytestmark = [
    pytest.mark.software,
    pytest.mark.skipif(not PYTHON, reason="$MINDTORCH_SOFTWARE names no Python"),
]

NAMES = (
    "llama", "qwen2", "qwen3", "mistral", "mixtral", "deepseek_v3", "gemma2", "gemma3", "phi3",
    "gpt2", "gpt_neox", "bloom", "opt", "mamba", "bert", "roberta", "distilbert", "t5", "bart",
    "whisper", "wav2vec2", "vit", "clip", "segformer", "resnet", "qwen2_vl",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("architectures")


def environ(standing_in):
    site = ROOT / "mindtorch" / "_compat" / "torch_shim" / "site"
    path = {"PYTHONPATH": os.pathsep.join((str(site), str(ROOT)))} if standing_in else {}
    return {**os.environ, "HF_HUB_OFFLINE": "1", **path}


def run(name, device, folder, *, standing_in):
    subprocess.run(
        [PYTHON, str(HERE / "architectures.py"), name, device, str(folder)],
        env=environ(standing_in), check=True, capture_output=True,
    )  # fmt: skip


IMPORTING = """
import sys
sys.path.insert(0, sys.argv[1])
import beside
beside.declare()
import importlib, pkgutil, transformers.models as models
for package in pkgutil.iter_modules(models.__path__, models.__name__ + "."):
    for module in pkgutil.iter_modules(importlib.import_module(package.name).__path__):
        if module.name.startswith("modeling_"):
            try:
                importlib.import_module(f"{package.name}.{module.name}")
            except ImportError as error:
                print(module.name, error)
"""


def test_every_model_of_transformers_imports_that_imports_on_torch():
    refused = {}
    for standing_in in (False, True):
        command = [PYTHON, "-c", IMPORTING, str(HERE)]
        done = subprocess.run(command, env=environ(standing_in), check=True, capture_output=True)
        refused[standing_in] = {line.split()[0] for line in done.stdout.decode().splitlines()}
    assert refused[True] <= refused[False]


@pytest.mark.parametrize("name", NAMES)
def test_an_architecture_gives_what_it_gives_on_torch(name, folder):
    run(name, "cpu", folder, standing_in=False)
    wrong = {}
    for device in ("cpu", "npu"):
        run(name, device, folder, standing_in=True)
        stages = compare.table(folder, name, device)
        wrong |= {f"{device} {s}": v for s, v in stages.items() if v != "ok" and v[0] != "-"}
    assert wrong == {}
