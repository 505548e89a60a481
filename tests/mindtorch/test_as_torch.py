"""`import torch` finds mindtorch: in one process by as_torch, in a program by `exec`."""

import inspect
import json
import os
import signal
import subprocess
import sys
import textwrap
from importlib import import_module
from pathlib import Path

import pytest

import mindtorch

ROOT = Path(__file__).resolve().parent.parent.parent
SITE = ROOT / "mindtorch" / "_compat" / "torch_shim" / "site"


def run(code, *, site=False, **variables):
    """What a fresh interpreter prints last, as JSON."""
    folders = [str(ROOT)] if not site else [str(SITE), str(ROOT)]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(folders), **variables}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


def test_import_torch_gives_mindtorch_in_this_process_only():
    code = """
import mindtorch.as_torch, json, importlib.metadata, importlib.util, pickle, typing
import torch, torch.nn.functional as F, torch.utils.data, mindtorch
from torch import nn
from torch.utils import _pytree
from torch.autograd.graph import Node
model = pickle.loads(pickle.dumps(nn.Linear(2, 2)))
for made in (torch.jit.script(model), torch.jit.trace(model, torch.ones(2))):
    assert torch.equal(pickle.loads(pickle.dumps(made))(torch.ones(2)), model(torch.ones(2)))
typing.get_type_hints(nn.Module)
class Failing(torch.utils.data.Dataset):
    def __len__(self): return 2
    def __getitem__(self, index): raise ValueError("no row")
try:
    list(torch.utils.data.DataLoader(Failing(), num_workers=1))
except ValueError as error:
    assert "no row" in str(error)
print(json.dumps([torch is mindtorch, nn.Linear.__module__, torch.Tensor.__module__,
                  importlib.metadata.version("torch"), torch.__version__ >= (2, 13),
                  importlib.util.find_spec("torch") is not None,
                  importlib.util.find_spec("torch.no_such_module") is None]))
"""
    told, _ = run(code)
    assert told == [True, "torch.nn.modules.linear", "torch", "2.13.0", True, True, True]


def test_named_results_are_torchs():
    code = """
import mindtorch.as_torch, json, pickle, torch
most = torch.max(torch.eye(2), 0)
print(json.dumps([str(type(most)), isinstance(most, torch.return_types.max),
                  pickle.loads(pickle.dumps(most)).indices.tolist()]))
"""
    assert run(code)[0] == ["<class 'torch.return_types.max'>", True, [0, 1]]


PLACED = """
nn.init.kaiming_uniform_ nn.functional.relu nn.utils.clip_grad_norm_ vmap func.jacrev
nn.utils.rnn.pad_sequence nn.utils.prune.l1_unstructured nn.utils.parametrize.cached
nn.utils.parametrizations.spectral_norm autograd.grad autograd.functional.jacobian
utils.checkpoint.checkpoint manual_seed set_printoptions set_default_dtype is_tensor is_storage
serialization.add_safe_globals masked.amax nested.as_nested_tensor library.custom_op
fx.symbolic_trace overrides.get_ignored_functions jit.annotate jit.trace hub.load
distributed.all_reduce distributed.new_group amp.autocast utils.data.default_collate
quantize_per_tensor from_dlpack lobpcg sparse_coo_tensor ao.quantization.prepare
backends.cuda.sdp_kernel compiler.disable export.dims
"""


def test_functions_say_where_torch_has_them():
    pytest.importorskip("torch", reason="torch is the oracle")

    def place(name):
        module, _, function = name.rpartition(".")
        return getattr(import_module(f"torch.{module}".rstrip(".")), function).__module__

    code = f"""
import mindtorch.as_torch, json
from importlib import import_module
{textwrap.dedent(inspect.getsource(place))}
print(json.dumps([place(name) for name in {PLACED.split()}]))
"""
    names = PLACED.split()
    expected = {name: place(name) for name in names}
    assert dict(zip(names, run(code)[0], strict=True)) == expected


def test_absent_names_say_who_asked_and_what_is_near():
    code = """
import mindtorch.as_torch, json, torch
texts = []
for ask in ("torch.maxximum", "from torch import maxximum", "import torch.no_such_module",
            "torch.nn.functional.reluu"):
    try:
        exec(ask)
    except Exception as error:
        texts.append([type(error).__name__, str(error), error.__notes__[0]])
print(json.dumps([texts, hasattr(torch, "maxximum"), mindtorch.as_torch.absent_names()]))
"""
    (texts, there, names), _ = run(code)
    assert [kind for kind, *_ in texts] == [
        "AttributeError", "ImportError", "ModuleNotFoundError", "AttributeError",
    ]  # fmt: skip
    assert [said.partition(" (")[0] for _, said, _ in texts] == [
        "module 'torch' has no attribute 'maxximum'",
        "cannot import name 'maxximum' from 'torch'",
        "No module named 'torch.no_such_module'",
        "module 'torch.nn.functional' has no attribute 'reluu'",
    ]
    assert "torch.maxximum (asked for by <string>:1)" in texts[0][2]
    assert "nearest: torch.maximum" in texts[0][2]
    assert "torch.maxximum" in texts[1][2]
    assert "torch.no_such_module" in texts[2][2]
    assert "torch.nn.functional.relu" in texts[3][2]
    assert not there
    assert names["torch.maxximum"] >= 3


def test_a_program_finds_version_and_module_on_its_path():
    code = """
import importlib.metadata, json
version = importlib.metadata.version("torch")
import torch
print(json.dumps([version, torch.ones(2).tolist(), hasattr(torch, "no_such_name")]))
"""
    told, stderr = run(code, site=True, MINDTORCH_ABSENT="-")
    assert told == ["2.13.0", [1.0, 1.0], False]
    assert "1 torch.no_such_name" in stderr


def test_another_torch_is_not_replaced():
    code = """
import sys, types, json
sys.modules["torch"] = types.ModuleType("torch")
sys.modules["torch"].__file__ = "/elsewhere/torch/__init__.py"
try:
    import mindtorch.as_torch
except RuntimeError as error:
    print(json.dumps(str(error)))
"""
    told, _ = run(code)
    assert "/elsewhere/torch" in told


def test_torch_npu_is_found_only_when_asked_for():
    code = """
import mindtorch.as_torch, importlib.util, json
print(json.dumps(importlib.util.find_spec("torch_npu") is not None))
"""
    assert run(code)[0] is False
    assert run(code, MINDTORCH_TORCH_NPU="1")[0] is True


def test_exec_runs_a_program_and_leaves_with_its_code():
    code = "import torch, sys; torch.ops.aten.add; hasattr(torch, 'no_such_name'); sys.exit(7)"
    done = _exec("--absent", "-", "--", sys.executable, "-c", code)
    assert done.returncode == 7
    assert "1 torch.no_such_name" in done.stderr


def _exec(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mindtorch_npu", "exec", *words]
    return subprocess.run(command, capture_output=True, text=True)


def test_exec_leaves_signals_to_the_program():
    """Whoever ends `exec` ends the program, and is told by which signal it ended."""
    code = "import os, signal; print(os.getpid(), flush=True); os.kill(os.getpid(), signal.SIGTERM)"
    command = [sys.executable, "-m", "mindtorch_npu", "exec", "--", sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        said = process.communicate()[0]
    assert (int(said), process.returncode) == (process.pid, -signal.SIGTERM)


def test_absent_names_follow_no_link(tmp_path):
    kept, link = tmp_path / "kept.txt", tmp_path / "link"
    kept.write_text("mine\n")
    link.symlink_to(kept)
    code = "import torch; hasattr(torch, 'maxximum')"
    done = _exec("--absent", str(link), "--", sys.executable, "-c", code)
    assert kept.read_text() == "mine\n"
    assert f"absent names are not written to {link}" in done.stderr
    assert "maxximum" in done.stderr
    done = _exec("--absent", str(tmp_path / "new"), "--", sys.executable, "-c", code)
    assert "maxximum" in (tmp_path / "new").read_text()


@pytest.mark.parametrize("kind", ["absent", "text", "circle", "folder", "nameless", "long"])
def test_exec_names_a_program_that_cannot_be_started(kind, tmp_path):
    program = tmp_path / "program"
    if kind == "text":
        program.write_text("print('no line says what runs this')")
        program.chmod(0o700)
    elif kind == "circle":
        program.symlink_to(program)
    elif kind == "folder":
        program.mkdir()
    name = {"nameless": "", "long": "a" * 300}.get(kind, str(program))
    done = _exec("--", name)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {name}: ")


def test_operators_of_torchvision_are_declared():
    from mindtorch._compat.torch_shim import torchvision

    torchvision.declare_all()
    boxes = mindtorch.tensor([[0.0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 3, 3]])
    scores = mindtorch.tensor([0.9, 0.8, 0.7])
    assert mindtorch.ops.torchvision.nms(boxes, scores, 0.5).tolist() == [0, 2]
