"""`.code` and `.graph` of scripted programs are torch's, letter by letter."""

import contextlib
import importlib.util
import io
import re
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")

TEXT = (Path(__file__).parent / "data" / "torchscript_programs.txt").read_text(encoding="utf-8")
PROGRAMS = [part for part in re.split(r"(?m)^#%%\n", TEXT) if part.strip()]
HEAD = """import {0} as torch, math
from typing import *
from {0} import nn, Tensor
import {0}.nn.functional as F

def show(f):
    f = torch.jit.script(f)
    print(f.code)
    print(f.graph)
    return f
"""


def printed(lib, folder, program):
    """What a program prints with one library, as a module of its own file."""
    path = folder / f"{lib}.py"
    path.write_text(HEAD.format(lib) + program, encoding="utf-8")
    name = "scripted_program"
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    text = io.StringIO()
    try:
        with contextlib.redirect_stdout(text):
            spec.loader.exec_module(module)
    finally:
        del sys.modules[name]
    # How often a name was taken before depends on the tests that ran before.
    return re.sub(r"___torch_mangle_\d+\.", "", text.getvalue()).replace(str(path), "")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_texts_are_those_of_torch(program, tmp_path):
    ours, theirs = (printed(lib, tmp_path, program) for lib in ("mindtorch", "torch"))
    assert "def " in theirs
    assert ours == theirs


REFUSED = """
def returned(x: int) -> str: return x
def unknown(x):
    y = undefined_thing(x)
def changed(x: int):
    y = 1
    if x > 1: y = "a"
    return y
def attribute(x):
    return x.foo()
def many(*a): return a
def generator(x):
    yield x
K = 3
def closed(x): return x + K
def recursive(n: int) -> int:
    if n <= 1:
        return 1
    return n * recursive(n - 1)
def mutable(x: List[int] = [1]): return x
for function in (returned, unknown, changed, attribute, many, generator, closed, recursive,
                 mutable):
    try:
        torch.jit.script(function)
    except Exception as error:
        print("def ", type(error).__name__, str(error).split("  File")[0])
"""


@pytest.mark.filterwarnings("ignore")
def test_what_is_refused_is_said_as_torch_says_it(tmp_path):
    ours, theirs = (printed(lib, tmp_path, REFUSED) for lib in ("mindtorch", "torch"))
    assert ours == theirs


TRACED = """
count = [0]
def impure(x):
    count[0] += 1
    return x + count[0]
def branch(x):
    return x * 2 if x.sum() > 0 else x * -3
def noisy(x):
    return F.dropout(x)
class Two(nn.Module):
    def forward(self, x, h):
        return x + h, [h]
ones = torch.ones(4)
two = torch.jit.trace(Two(), (ones, ones))
traced = torch.jit.trace(branch, ones)
for action in (
    lambda: torch.jit.trace(impure, ones), lambda: torch.jit.trace(impure, ones, check_trace=False),
    lambda: torch.jit.trace(branch, ones, check_inputs=[(-ones,)]), lambda: traced(-ones).tolist(),
    lambda: torch.jit.trace(noisy, ones), lambda: two(ones), lambda: two(ones, ones, ones),
    lambda: two(h=ones, x=ones)[0].tolist(), lambda: traced(), lambda: traced(ones, ones),
):
    try:
        result = action()
        print("def ", result if isinstance(result, list) else type(result).__name__)
    except Exception as error:
        print("def ", type(error).__name__, "\\n".join(str(error).splitlines()[:2]))
"""


@pytest.mark.filterwarnings("ignore")
def test_traces_are_checked_and_called_as_torchs(tmp_path):
    ours, theirs = (printed(lib, tmp_path, TRACED) for lib in ("mindtorch", "torch"))
    assert ours == theirs
