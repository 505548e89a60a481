"""A launch of an operator that has a formula is judged, whatever its arguments."""

import sys
from pathlib import Path

import layered

# Fills, reductions, bounds and norms in several dtypes, as training makes them.
PROGRAM = """
import mindtorch as torch
for d in (torch.float16, torch.bfloat16, torch.int32, torch.bool):
    x = torch.ones(8, 8, device="npu", dtype=d)
    torch.full((3,), 0.1 if d.is_floating_point else 1, device="npu", dtype=d)
    torch.zeros(3, device="npu", dtype=d)
    x.sum(), x.sum(dtype=torch.float32), x.sum((0, 1), keepdim=True), x.cumsum(0)
y = torch.ones(8, 8, device="npu")
y.clamp(0.1, 0.9), y.clamp(min=0.5), y.clamp(max=0.5), y.softmax(0), y.std(), y.var(0), y.norm()
torch.linalg.vector_norm(y, 1, 0), y.masked_fill(y > 0, 2.5), y.triu(1), y.max()
y.fill_(3.0), y.zero_()
"""


def test_every_launch_of_a_program_is_judged(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    outcome = layered.run("--verify", "all", "--", sys.executable, str(script))
    assert outcome.code == 0, outcome.err
    assert " 0 wrong, 0 not judged" in outcome.err


def test_faults_in_any_of_them_are_found(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    names = ("InplaceFillScalar", "InplaceOne", "ReduceSum", "LinalgVectorNorm", "Clamp")
    faults = ",".join(f"{name.lower()}:zeros" for name in names)
    words = ("--verify", "all", "--", sys.executable, str(script))
    outcome = layered.run(*words, ACLSIM_FAULTS=faults)
    assert outcome.code == 1, outcome.err
    assert all(f"aclnn{name} " in outcome.err for name in names[:2])
