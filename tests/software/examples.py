"""Runs the examples of torch's docstrings in torch and in mindtorch, and compares what they print.

    python tests/software/examples.py [--device cpu|npu] [--only PATTERN] [--out FOLDER]

The docstrings are read from the torch that is installed; all examples of one are one program. Names
that examples take for granted (model, input, loss_fn …) are in PRELUDE. A statement prints what it
wrote, the repr of its value, warnings, or the class and first line of its error. What torch itself
cannot run for want of a name, a module, a file or a GPU does not count. On npu, factories make
tensors of the device and random numbers are those of the cpu. Exit code: 0 where all are equal.
"""

import argparse
import ast
import contextlib
import gc
import io
import json
import linecache
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import warnings
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
LEFT_OUT = r"\._|_inductor|\.testing|torch\.onnx|tensorboard|fx\.experimental|fx\.passes|\.tests?\b"
DRAWS = "rand randn randint rand_like randn_like randint_like randperm normal bernoulli multinomial"
FILLS = "uniform_ normal_ random_ bernoulli_ exponential_ geometric_ cauchy_ log_normal_"
PRELUDE = """
import math, os, sys, copy, functools, itertools, contextlib, tempfile
from collections import OrderedDict, namedtuple
from typing import *
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, TensorDataset
device = torch.device(DEVICE)
torch.manual_seed(0)
model = net = nn.Linear(4, 3)
input, target, loss_fn, epochs = torch.randn(2, 4), torch.randn(2, 3), nn.MSELoss(), 2
optimizer = opt = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
dataset = TensorDataset(torch.randn(8, 4), torch.randn(8, 3))
loader = data_loader = dataloader = train_loader = DataLoader(dataset, batch_size=4)
torch.manual_seed(0)
"""


def programs():
    """Name of a docstring → its examples' source, of all public modules of torch."""
    import importlib
    import inspect
    import pkgutil

    import torch

    known, found = set(), {}

    def take(name, doc):
        if isinstance(doc, str) and doc not in known and (source := source_of(doc)):
            known.add(doc)
            found[name] = source

    modules = [torch]
    for info in pkgutil.walk_packages(torch.__path__, "torch.", onerror=lambda name: None):
        if not re.search(LEFT_OUT, info.name):
            with contextlib.suppress(BaseException), contextlib.redirect_stderr(io.StringIO()):
                modules.append(importlib.import_module(info.name))
    for module in sorted(modules, key=lambda m: m.__name__.count(".")):
        take(module.__name__, module.__doc__)
        for name, value in list(vars(module).items()):
            home = getattr(value, "__module__", None) or "torch"
            if name.startswith("_") or inspect.ismodule(value) or not home.startswith("torch"):
                continue
            take(f"{module.__name__}.{name}", getattr(value, "__doc__", None))
            if inspect.isclass(value):
                for member in dir(value):
                    inner = inspect.getattr_static(value, member, None)
                    take(f"{module.__name__}.{name}.{member}", getattr(inner, "__doc__", None))
    return found


def source_of(doc):
    """The code of a docstring: what stands after prompts, and blocks of Python after `::`."""
    lines = textwrap.dedent(doc if doc.startswith((" ", "\n")) else "    " + doc).splitlines()
    chunks, chunk, block = [], [], None
    for line in [*lines, "end"]:
        prompt = re.match(r"\s*(?:>>>|\.\.\.)(?: (.*)|$)", line)
        indent = len(line) - len(line.lstrip())
        if prompt and (chunk or ">>>" in line):
            chunk, block = [*chunk, (">>>" in line, prompt[1] or "")], None
            continue
        if chunk:
            chunks, chunk = [*chunks, *compiled_parts(chunk)], []
        if block is not None and line.strip() and indent <= block[0]:
            whole = textwrap.dedent("\n".join(block[1])).splitlines()
            chunks += compiled_parts([(not i, text) for i, text in enumerate(whole)])
            block = None
        if block is not None:
            block[1].append(line)
        elif re.match(r"\s*(\.\. (code|code-block|sourcecode):: *(python|py)?|.*::)$", line):
            block = (indent, [])
    return "\n".join(chunks)


def compiled_parts(chunk):
    """Lines as one piece of source; those of each prompt for themselves where that is none."""
    whole = "\n".join(text for _, text in chunk)
    parts = [whole]
    try:
        ast.parse(whole)
    except SyntaxError:
        starts = [i for i, (first, _) in enumerate(chunk) if first]
        ends = [*starts[1:], len(chunk)]
        parts = ["\n".join(t for _, t in chunk[a:b]) for a, b in zip(starts, ends, strict=True)]
    for part in parts:
        with contextlib.suppress(SyntaxError):
            ast.parse(part)
            yield part


def run(path, out, device):
    """Run each program of a file in a child of its own; what its statements print goes to `out`."""
    exec(PRELUDE + "loss_fn(model(input), target).backward(); optimizer.step()", {"DEVICE": "cpu"})
    gc.freeze()
    children = set()
    for name, source in json.loads(Path(path).read_text()).items():
        if (child := os.fork()) == 0:
            os.setsid()
            signal.alarm(40)
            one(name, source, out, device)
        children.add(child)
        while len(children) > (0 if name == "last" else 1):
            done, _ = os.wait()
            children.discard(done)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(done, signal.SIGKILL)


def one(name, source, out, device):
    """Run a program's statements, and write their texts after each."""
    os.chdir(tempfile.mkdtemp())
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    scope = {"__name__": "__main__", "DEVICE": device}
    with contextlib.ExitStack() as stack:
        if device != "cpu":
            stack.enter_context(on_device(device))
        exec(PRELUDE, scope)
        with contextlib.suppress(Exception):  # but torch itself, whose float is a dtype
            exec(f"from {name.rpartition('.')[0]} import *" if name.count(".") > 1 else "", scope)
        linecache.cache[f"<{name}>"] = (len(source), None, source.splitlines(True), f"<{name}>")
        for statement in ast.parse(source).body:
            line = json.dumps([name, ast.unparse(statement), printed(statement, name, scope)])
            with open(out, "a", encoding="utf-8") as file:
                file.write(line + "\n")
    os._exit(0)


def on_device(device):
    """A mode in which factories make tensors of a device, with the numbers that cpu draws."""
    import torch
    from torch.overrides import TorchFunctionMode

    class OnDevice(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            kwargs, name = kwargs or {}, getattr(func, "__name__", "")
            if name in DRAWS.split() and "device" not in kwargs:
                on_cpu = [v.cpu() if isinstance(v, torch.Tensor) else v for v in args]
                place = {} if any(isinstance(v, torch.Tensor) for v in args) else {"device": "cpu"}
                result = func(*on_cpu, **kwargs, **place)
                return result.detach().to(device).requires_grad_(result.requires_grad)
            if name in FILLS.split() and args[0].device.type == device:
                return args[0].copy_(func(args[0].detach().cpu(), *args[1:], **kwargs))
            return func(*args, **kwargs)

    stack = contextlib.ExitStack()
    stack.enter_context(torch.device(device))
    stack.enter_context(OnDevice())
    return stack


def printed(statement, name, scope):
    """What a statement prints, its value's repr, warnings; or its error's class and first line."""
    text = io.StringIO()
    with warnings.catch_warnings(record=True) as log, contextlib.redirect_stdout(text):
        warnings.simplefilter("always")
        try:
            if isinstance(statement, ast.Expr):
                value = eval(compile(ast.Expression(statement.value), f"<{name}>", "eval"), scope)
                if value is not None:
                    print(repr(value))
            else:
                exec(compile(ast.Module([statement], []), f"<{name}>", "exec"), scope)
        except BaseException as error:
            print(f"! {type(error).__name__}: {next(iter(str(error).splitlines()), '')}")
    lines = [f"{w.category.__name__}: {str(w.message).splitlines()[0]}" for w in log]
    return "\n".join([text.getvalue().rstrip(), *dict.fromkeys(lines)])


def of_torch(text):
    """Whether torch could run a statement."""
    return not re.search(
        r"! (Name|Import|ModuleNotFound|FileNotFound|Syntax|Attribute)Error|CUDA|cuda", text
    )


def plain(text):
    """A text without what only a device or an address differs in."""
    text = re.sub(r",\s*device='(npu|cpu)(:0)?'|0x[0-9a-f]+|/tmp/\S+", "", text)
    text = re.sub(r" \(Triggered internally at .*|DeprecationWarning: `torch.jit.*", "", text)
    return re.sub(r"\b(npu|cpu)(:0)?\b", "cpu", text)


def read(path):
    """Name → [(statement, text)] of a run."""
    runs = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        name, statement, text = json.loads(line)
        runs.setdefault(name, []).append((statement, text))
    return runs


def verdict(theirs, ours):
    """(equal, digits or differs; statement, torch's text, mindtorch's); None where nothing ran."""
    texts, result = dict(enumerate(ours)), ("equal", "", "", "")
    pairs = [
        (s, t, texts.get(i, (s, "no end"))[1]) for i, (s, t) in enumerate(theirs) if of_torch(t)
    ]
    for statement, a, b in pairs:
        a, b = plain(a), plain(b)
        if a != b and compare.difference(a, b) is not None:
            return "differs", statement, a, b
        if a != b:
            result = ("digits", statement, a, b)
    return result if pairs else None


def main():
    """Extract, run and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", default="", help="a pattern of names")
    parser.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()) / "examples")
    options = parser.parse_args()
    options.out.mkdir(exist_ok=True, parents=True)
    source, theirs = options.out / "programs.json", options.out / "torch"
    if not source.exists():
        source.write_text(json.dumps(programs()))
    chosen = {n: s for n, s in json.loads(source.read_text()).items() if re.search(options.only, n)}
    if not theirs.exists():
        start(source, theirs, "cpu")
    ours = options.out / options.device
    ours.unlink(missing_ok=True)
    part = options.out / f"{options.device}.json"
    part.write_text(json.dumps(chosen))
    extra = ["--npu"] if options.device == "npu" else []
    start(part, ours, options.device, "-m", "mindtorch_npu", "exec", *extra, "--", sys.executable)
    a, b = read(theirs), read(ours)
    verdicts = {n: v for n in chosen if (v := verdict(a.get(n, []), b.get(n, [])))}
    for name, (kind, statement, expected, text) in verdicts.items():
        if kind == "differs":
            print(
                f"{name}\n    {statement[:300]}\n  torch: {expected[:500]}\n  ours:  {text[:500]}"
            )
    counts = Counter(kind for kind, *_ in verdicts.values())
    print(f"{options.device}: {dict(counts)} of {len(verdicts)} docstrings")
    return counts["differs"] > 0


def start(source, out, device, *python):
    """Run the programs in a process of its own."""
    command = [sys.executable, *python, __file__, "run", str(source), str(out), device]
    subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        run(*sys.argv[2:])
    else:
        sys.path.insert(0, str(HERE.parent / "mindtorch" / "programs"))
        import compare

        sys.exit(main())
