"""A launch of an operator that has a formula is judged, whatever its arguments."""

import sys
from pathlib import Path

import layered
import pytest

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
image, weight = (torch.randn(2, 3, n, n, device="npu", requires_grad=True) for n in (9, 3))
for torch.npu.conv.allow_hf32 in (False, True):
    torch.nn.functional.conv2d(image, torch.cat([weight, weight])).sum().backward()
"""

# As clients call operators and mindtorch does not: one bound of two, no dims for all of them, ties
# in any order, indices without checks, copies to another dtype, tensors of no element.
CLIENT = """
import numpy as np, aclnn_bindings
cann = aclnn_bindings.open()
ops = cann.ops
rng = np.random.default_rng(0)
def new(*shape, dtype="float32"): return cann.tensor(rng.normal(0, 4, shape).astype(dtype))
one, x, y = new(), new(4, 8), new(4, 8)
ops.aclnnClamp(self=x, clipValueMin=None, clipValueMax=0.5, out=y)
ops.aclnnClamp(self=x, clipValueMin=0.25, clipValueMax=None, out=y)
ops.aclnnReduceSum(self=x, dims=(), keepDims=False, dtype="FLOAT", out=one)
ops.aclnnLinalgVectorNorm(self=x, ord=2.0, dims=(), keepDims=False, dtype="FLOAT", out=one)
places = new(4, 8, dtype="int64")
sorted, order = new(4, 8, dtype="int64"), new(4, 8, dtype="int64")
ops.aclnnSort(self=places, stable=False, dim=-1, descending=True, valuesOut=sorted,
              indicesOut=order)
at = cann.tensor(np.array([1, 1, 3]))
ops.aclnnIndexPutImpl(selfRef=x, indices=[at], values=new(3, 8), accumulate=True, unsafe=True)
ops.aclnnInplaceCopy(selfRef=x, src=places)
ops.aclnnInplaceCopy(selfRef=places, src=x)
ops.aclnnInplaceZero(selfRef=new(0, 3))
"""


@pytest.mark.parametrize("text", [PROGRAM, CLIENT], ids=["program", "client"])
def test_every_launch_is_judged(tmp_path: Path, text: str) -> None:
    script = tmp_path / "program.py"
    script.write_text(text)
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
