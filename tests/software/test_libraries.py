"""Libraries that nobody here wrote give on mindtorch what they give on torch.

Needs $MINDTORCH_SOFTWARE, a Python with torch and requirements.txt. Run with -m software.
"""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PYTHON = os.environ.get("MINDTORCH_SOFTWARE")

pytestmark = [
    pytest.mark.software,
    pytest.mark.skipif(not PYTHON, reason="$MINDTORCH_SOFTWARE names no Python"),
]


def told(library, path, *, standing_in):
    environ = dict(os.environ)
    if standing_in:
        site = ROOT / "mindtorch" / "_standin" / "site"
        old = environ.get("PYTHONPATH", "").split(os.pathsep)
        environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(site), str(ROOT), *old)))
    done = subprocess.run(
        [PYTHON, str(HERE / "libraries.py"), library, str(path)],
        env=environ, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(path.read_text())


def flat(value):
    if isinstance(value, list):
        return [number for part in value for number in flat(part)]
    return [value]


@pytest.mark.parametrize("library", ["lightning"])
def test_a_library_gives_what_it_gives_on_torch(library, tmp_path):
    theirs = told(library, tmp_path / "torch.json", standing_in=False)
    ours = told(library, tmp_path / "mindtorch.json", standing_in=True)
    assert ours.keys() == theirs.keys()
    for stage, expected in theirs.items():
        a, b = np.array(flat(ours[stage])), np.array(flat(expected))
        # Twenty layers of float32 sums in another order: 2e-3 of the largest number.
        assert a.shape == b.shape, stage
        assert np.abs(a - b).max() <= 2e-3 * max(np.abs(b).max(), 1e-3), stage
