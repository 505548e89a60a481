"""Writes `mindtorch/_compat/signatures.txt`: the signatures that torch parses arguments by.

`python -m tests.opdb.signatures` reads the signatures of names that mindtorch has from the text of
torch's library, and keeps for each name those that explain every answer of torch to wrong calls.
"""

import inspect
import itertools
import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from types import FunctionType
from typing import Any

import torch

import mindtorch
from mindtorch._compat import argument_parser
from mindtorch._compat.argument_parser import refusal, signature
from mindtorch._compat.signatures import derived

PLACE = Path(argument_parser.__file__).with_name("signatures.txt")
SPACES = ("", "special", "linalg", "fft", "nn.functional", "_C._VariableFunctions", "_C._nn")
SKIPPED = frozenset(("backward", "compile", "cuda", "load", "register_hook", "save"))
# What functions of Python call in C by names of its own.
CALLED = frozenset((
    "col2im", "cross_entropy_loss", "im2col", "nll_loss_nd", "upsample_bicubic2d",
    "upsample_bilinear2d", "upsample_linear1d", "upsample_nearest1d", "upsample_nearest2d",
    "upsample_nearest3d", "upsample_trilinear3d",
))  # fmt: skip
BUILTIN = (type(torch.add), type(torch.Tensor.add))
_LITERAL = re.compile(rb"[A-Za-z_]\w*\([\x20-\x27\x2a-\x7e]*\)(?:\|deprecated|\|hidden)?(?=\x00)")
Answer = tuple[tuple[Any, ...], dict[str, Any], str]


class Unfit:
    """What no signature takes."""


def _probes() -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    u, x = Unfit(), torch.ones(2, 2)
    mixed: list[tuple[Any, ...]] = [
        (x, u), (x, x, u), (x, 1, u), (x, x, x, u), (x, 1, 1, u), (x, [1], u), (x, "a", u),
        ([x], u), ([1], u), (1, u), (x, x, 1, u), (x, 1, x, u), (x, x, x, 1, u), (x, x, x, x, u),
        (1, 1, u), (1, x, u), (1.5, u), (torch.float32, u),
    ]  # fmt: skip
    named: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((), {"foo": u}), ((u,), {"foo": u}), ((x,), {"foo": 1}), ((x,), {"out": u}),
        ((), {"out": u}), ((x,), {"dtype": u}),
    ]  # fmt: skip
    return [((u,) * n, {}) for n in range(13)] + [(m, {}) for m in mixed] + named


def literals() -> dict[str, list[str]]:
    """The signatures in torch's library by name."""
    data = (Path(torch.__path__[0]) / "lib" / "libtorch_python.so").read_bytes()
    named: dict[str, dict[str, None]] = defaultdict(dict)
    for match in _LITERAL.findall(data):
        text = match.decode()
        try:
            named[signature(text).name][text] = None
        except ValueError:
            continue
    return {name: list(texts) for name, texts in named.items()}


def answers(function: Callable[..., Any]) -> list[Answer]:
    """What torch says of the wrong calls that it refuses as such."""
    said: list[Answer] = []
    for args, kwargs in _probes():
        try:
            function(*args, **kwargs)
        except TypeError as error:
            said.append((args, kwargs, str(error)))
        except Exception:
            continue
    return said


def explaining(name: str, candidates: Sequence[str], said: Sequence[Answer]) -> list[str]:
    """Those signatures of a name by which most answers come out; [] where most do not."""

    def wrong(texts: Sequence[str]) -> int:
        rows = [signature(t) for t in texts]
        return sum(str(refusal(rows, args, kwargs)) != text for args, kwargs, text in said)

    best = min(_choices(candidates, said), key=lambda c: (wrong(c), len(c)), default=())
    return list(best) if best and wrong(best) < len(said) / 4 else []


def _choices(candidates: Sequence[str], said: Sequence[Answer]) -> Iterable[Sequence[str]]:
    visible = [c for c in candidates if not signature(c).hidden]
    hidden = [c for c in candidates if signature(c).hidden]
    listing = next((t for _, _, t in said if "but expected" in t), "")
    rows = re.findall(r"(?:^ \* |but expected )(\(.*\))$", listing, re.MULTILINE)
    if not rows:
        yield from ([c] for c in visible)
        yield from (list(pair) for pair in itertools.permutations(visible[:6], 2))
        return
    by_text = {signature(c).text: c for c in visible}
    if all(row in by_text for row in rows):
        for count in range(len(hidden) + 1):
            for more in itertools.combinations(hidden, count):
                yield [by_text[row] for row in rows] + list(more)


def _lines(name: str, said: Sequence[Answer], texts: Sequence[str]) -> list[str]:
    for _, _, text in said:
        if match := re.match(r"([\w.]+)\(\) takes (no|exactly one) argument", text):
            # A bound method's name differs from that of a called one.
            full = re.sub(r"^Tensor\.", "TensorBase.", match[1])
            return [f"{match[2].split()[-1]} {full}"]
    return explaining(name, texts, said)


def table() -> dict[str, list[str]]:
    """Every name, methods with a dot, with its signatures."""
    warnings.simplefilter("ignore")
    known, rows = literals(), dict[str, list[str]]()
    for space in SPACES:
        theirs, ours = torch, [mindtorch, mindtorch.nn.functional]
        for part in space.split(".") if space else ():
            theirs = getattr(theirs, part)
            ours = [getattr(o, part) for o in ours if part[:1] != "_" and hasattr(o, part)] or ours
        for name in dir(theirs):
            function = getattr(theirs, name, None)
            if name[0] != "_" and name not in SKIPPED and isinstance(function, BUILTIN):
                raw = function.__name__
                known_here = name in CALLED or any(hasattr(o, name) for o in ours)
                if raw not in rows and known_here:
                    inner = "_VF." * space.startswith("_C")
                    rows[inner + raw] = _lines(raw, answers(function), known.get(raw, []))
    rows |= _in_python("", torch, mindtorch) | _in_python(".", torch.Tensor, mindtorch.Tensor)
    for name in dir(torch.Tensor):
        method = getattr(torch.Tensor, name, None)
        known_here = name not in SKIPPED and hasattr(mindtorch.Tensor, name)
        if known_here and name[:2] != "__" and isinstance(method, BUILTIN):
            said = answers(lambda *a, n=name, **k: getattr(torch.ones(2, 2), n)(*a, **k))
            rows["." + name] = _lines(name, said, known.get(name, []))
    return {n: rows[n] for n in sorted(rows) if rows[n] and rows[n] != derived(n, rows)}


def _in_python(mark: str, theirs: Any, ours: Any) -> dict[str, list[str]]:
    """The functions that torch has in Python and mindtorch as an operator's entry."""
    rows = {}
    for name, function in vars(theirs).items():
        entry = getattr(getattr(ours, name, None), "__code__", None)
        in_python = isinstance(inspect.unwrap(function), FunctionType) if callable(function) else 0
        if in_python and entry and "<mindtorch" in entry.co_filename:
            params = inspect.signature(function).parameters.values()
            short = [
                p.replace(annotation=p.empty, default=p.empty if p.default is p.empty else None)
                for p in params
            ]
            if "<locals>" not in function.__qualname__:
                rows[mark + name] = [f"def {function.__qualname__}{inspect.Signature(short)}"]
    return rows


def written(table: Mapping[str, Sequence[str]]) -> str:
    """The text of a table: names of the same signatures share a heading of a hundred columns."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, rows in table.items():
        short = rf"\b{re.escape(name.rpartition('.')[2])}\b"
        groups.setdefault(tuple(re.sub(short, "F", r, count=1) for r in rows), []).append(name)
    lines = ["# Written by tests/opdb/signatures.py from torch 2.13; not edited."]
    lines += [
        "\n ".join((f"{names}: {rows[0]}", *rows[1:]))
        for rows, group in groups.items()
        for names in wrap(" ".join(group), 100)
    ]
    return "\n".join([*lines, ""])


def main() -> None:
    for name in ("Tensor", "Dtype", "Device"):
        setattr(argument_parser, name, getattr(torch, name.lower() if name != "Tensor" else name))
    PLACE.write_text(written(table()))


if __name__ == "__main__":
    main()
