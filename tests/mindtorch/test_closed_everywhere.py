"""After the session's end every row, method and handle refuses what it held, found by looking."""

import subprocess
import sys

import pytest

ROWS = """
import warnings
import mindtorch as torch
from mindtorch._backends.npu import runtime
from mindtorch_npu.laws import call, samples
from mindtorch.ops.spec import OPS

warnings.simplefilter("ignore")


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value] if value.device.type == "npu" else []
    if isinstance(value, list | tuple):
        return [each for part in value for each in tensors(part)]
    return []


def calls():
    for name, op in OPS.items():
        try:
            first = next(s for s in samples(op) if not s.error)
            args, kwargs = first.make(torch, "npu")
        except (StopIteration, NotImplementedError, RuntimeError):
            continue
        if tensors([args, list(kwargs.values())]):
            yield name, op, args, kwargs


for name, op, args, kwargs in calls():  # plans are made
    try:
        call(op, args, kwargs)
    except (RuntimeError, NotImplementedError):
        continue
torch.npu.synchronize()
kept = list(calls())
runtime.cann().runtime.close()
other = torch.full((1000,), 7.0, device="npu")
wrong = []
for name, op, args, kwargs in kept:
    try:
        got = [each.cpu() for each in tensors([call(op, args, kwargs)])]
    except RuntimeError as error:
        if "closed" not in str(error) and "is not implemented for NPU" not in str(error):
            wrong.append((name, str(error)))
    else:
        if got and name != "isreal":  # which is true of every real number
            wrong.append((name, "gave a result"))
assert len(kept) > 600, len(kept)
assert (other == 7).all().item(), "what came after was written to"
print(wrong or "held", end="")
"""

METHODS = """
import warnings
import mindtorch as torch
from mindtorch._backends.npu import runtime

warnings.simplefilter("ignore")
old = torch.arange(6.0).npu().requires_grad_()
stream, event, graph = torch.npu.Stream(), torch.npu.Event(), torch.npu.NPUGraph()
event.record()
pinned = torch.arange(6.0).pin_memory()
storage = old.untyped_storage()
runtime.cann().runtime.close()
other = torch.full((1000,), 7.0, device="npu")
VALUES = (1.0, 2.0, 3.0, 4.0, 5.0)
wrong, tried = [], 0


def tells(value):
    "Whether a result holds what was in the memory."
    if isinstance(value, torch.Tensor):
        if value.device.type != "npu":
            return value.device.type == "cpu" and value.numel() == 6
        try:
            return bool(value.sum().item() or True)
        except RuntimeError as error:
            return "closed" not in str(error)
    return isinstance(value, list | tuple) and any(v in VALUES for v in value if type(v) is float)


REFUSALS = (AttributeError, TypeError, ValueError, RuntimeError, NotImplementedError, IndexError,
            AssertionError, StopIteration, KeyError, OverflowError, BufferError)
# They make memory, or take another's, and read nothing of their own.
FRESH = ("new", "new_empty", "new_full", "new_ones", "new_tensor", "new_zeros", "set_", "isreal",
         "bernoulli")

for what in (old, stream, event, graph, storage):
    for name in dir(type(what)):
        if name in ("__class__", "__init_subclass__", "__new__", "__init__", "__dir__", "__del__"):
            continue
        tried += 1
        for arguments in ((), (1,), (other,), (old,)):
            this = old.detach() if what is old else what  # a method may give it other memory
            try:
                attribute = getattr(this, name)
                result = attribute(*arguments) if callable(attribute) else attribute
            except REFUSALS:
                continue
            except BaseException as error:
                wrong.append((type(what).__name__, name, repr(error)))
                continue
            if what is old and tells(result) and result is not other and name not in FRESH:
                wrong.append((name, arguments and "with an argument", "gave a result"))
assert tried > 700, tried
assert (other[1:] == 7).all().item(), "what came after was written to"
print(wrong or "held", end="")
"""


@pytest.mark.parametrize("program", [ROWS, METHODS], ids=["rows", "methods"])
def test_nothing_of_a_closed_session_is_read_or_written(program):
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "held"), ran.stderr[-2000:]
