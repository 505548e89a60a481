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


def run(name, device, folder, *, standing_in):
    environ = {**os.environ, "HF_HUB_OFFLINE": "1"}
    if standing_in:
        site = ROOT / "mindtorch" / "_standin" / "site"
        environ["PYTHONPATH"] = os.pathsep.join((str(site), str(ROOT)))
    subprocess.run(
        [PYTHON, str(HERE / "architectures.py"), name, device, str(folder)],
        env=environ, check=True, capture_output=True,
    )  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_an_architecture_gives_what_it_gives_on_torch(name, folder):
    run(name, "cpu", folder, standing_in=False)
    wrong = {}
    for device in ("cpu", "npu"):
        run(name, device, folder, standing_in=True)
        stages = compare.table(folder, name, device)
        wrong |= {f"{device} {s}": v for s, v in stages.items() if v != "ok" and v[0] != "-"}
    assert wrong == {}
