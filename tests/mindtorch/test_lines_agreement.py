"""Lines of torch, run by torch and by mindtorch: results, strides, errors and warnings agree.

Each line of `lines/*.txt` is an expression of `torch`, `T` (torch.tensor) and `np`; statements that
go before it end in `;;`, and `f | (1) | (2)` is two expressions. Each expression is one test.
"""

import warnings
from pathlib import Path

import numpy as np
import pytest
from mistakes import codes

import mindtorch

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")
LINES = [
    pytest.param(code, id=f"{file.stem}:{number}:{place}")
    for file in sorted(Path(__file__).with_name("lines").glob("*.txt"))
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
    if line and not line.startswith("#")
    for place, code in enumerate(codes(line))
]


def shown(value, library):
    if isinstance(value, library.Tensor):
        values = value.detach().cpu().tolist() if value.device.type != "meta" else "meta"
        return f"{value.dtype} {list(value.shape)} {value.stride()} {digits(values)}"
    if isinstance(value, tuple | list):
        return f"{type(value).__name__}({', '.join(shown(v, library) for v in value)})"
    return repr(value)


def digits(values):
    """Values as text, six digits of each: libraries round differently."""
    if isinstance(values, list):
        return [digits(v) for v in values]
    return f"{values:.6g}" if isinstance(values, float | complex) else values


# Folders whose code torch has in C: a warning names the line that called it.
_WITHIN = (f"{mindtorch.__path__[0]}/_", f"{mindtorch.__path__[0]}/ops", "<mindtorch ")


def outcome(line, library):
    """What a line gives, or raises, and what it warns of: first lines of the texts."""
    *statements, last = line.split(";;")
    names = {"torch": library, "T": library.tensor, "np": np}
    library.manual_seed(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            for statement in statements:
                exec(statement.strip(), names)
            result = shown(eval(last.strip(), names), library)
        except Exception as error:
            result = f"{type(error).__name__}: {str(error).splitlines()[:1]}"
    said = [
        f"{w.category.__name__}: {str(w.message).split(' (Triggered')[0].rstrip()}" for w in caught
    ]
    misplaced = [w.filename for w in caught if w.filename.startswith(_WITHIN)]
    return (result, *dict.fromkeys(said), *misplaced)  # how often is not compared


@pytest.fixture(autouse=True)
def _both_warn_each_time():
    """What is said once a process must not depend on which test came first."""
    before = [library.is_warn_always_enabled() for library in (mindtorch, torch)]
    for library in (mindtorch, torch):
        library.set_warn_always(True)
    yield
    for library, was in zip((mindtorch, torch), before, strict=True):
        library.set_warn_always(was)


@pytest.mark.parametrize("line", LINES)
def test_a_line_agrees_with_torch(line):
    ours = outcome(line, mindtorch)
    theirs = outcome(line, torch)
    assert ours == theirs, f"{line}\nmindtorch {ours}\ntorch     {theirs}"


def test_a_line_that_differs_is_seen():
    assert outcome("T([1.5]).sum()", mindtorch) != outcome("T([1.25]).sum()", torch)
    assert outcome("T([1, 2]).t().foo", mindtorch) != outcome("T([1, 2]).t()", torch)
