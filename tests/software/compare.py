"""Compares what torch and mindtorch wrote of an architecture, stage by stage."""

import json
from pathlib import Path

import numpy as np

# Float32 sums in another order differ by a few ulp of the largest term, and training amplifies
# that; bfloat16 rounds at 2**-8.
TOLERANCES = {"load": 1e-5, "forward": 2e-4, "backward": 1e-3, "save": 2e-3, "half": 6e-2,
              "train": 2e-3}  # fmt: skip


def verdict(stage, ours, theirs):
    """`ok`, `-` where the stage does not apply, or what is wrong."""
    if isinstance(theirs, dict):
        return "- torch fails too"
    if isinstance(ours, dict):
        return ours["error"]
    if ours is None or theirs is None:
        return "-"
    if stage not in TOLERANCES:
        return "ok" if ours == theirs else f"differs: {str(ours)[:60]}, torch {str(theirs)[:60]}"
    a, b = np.array(ours, float), np.array(theirs, float)
    if a.shape != b.shape:
        return f"shape {a.shape}, torch {b.shape}"
    scale = max(float(np.nanmax(np.abs(b), initial=0)), 1e-3)
    worst = float(np.nanmax(np.abs(a - b), initial=0)) / scale
    same = np.array_equal(np.isnan(a), np.isnan(b)) and worst <= TOLERANCES[stage]
    return "ok" if same else f"off by {worst:.1e} of the largest"


def table(folder, name, device):
    """Stage → verdict of one architecture on one device."""
    folder = Path(folder)
    ours = json.loads((folder / f"{name}.{device}.mindtorch.json").read_text())
    theirs = json.loads((folder / f"{name}.cpu.torch.json").read_text())
    return {s: verdict(s, ours.get(s, {"error": "not reached"}), theirs[s]) for s in theirs}
