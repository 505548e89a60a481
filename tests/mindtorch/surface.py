"""Compares torch's public surface with mindtorch's: modules, names, their kinds, what classes have,
and the parameters of functions and methods.

    python -m tests.mindtorch.surface              # all differences
    python -m tests.mindtorch.surface --write      # those that remain, to data/surface_known.txt

A difference is one word with a sign before it: `-name` is absent, `!name` is of another kind,
`~name` takes other parameters.
"""

import argparse
import inspect
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import mindtorch
from tests.mindtorch import public_names

KNOWN = Path(__file__).with_name("data") / "surface_known.txt"
# Devices that are not here, tools for torch's own development, and C++ of exporters.
APART = ("cuda", "xpu", "mtia", "mps", "onnx", "backends", "contrib", "distributed.elastic",
         "distributed.launcher", "distributed.rpc", "distributed.autograd", "distributed.run",
         "distributed.launch", "utils.data.datapipes", "utils.bottleneck", "utils.viz",
         "utils.model_dump", "utils.jit", "utils.benchmark.op_fuzzers")  # fmt: skip
# What torch's parser in C names but does not show, and what every function takes here.
MORE = frozenset({"out", "axis", "keepdims"})
SPECIAL = ("__init__", "__call__")


def kind(value: object) -> str:
    """Class, callable, module, or what a constant is."""
    if inspect.isclass(value):
        return "class"
    if isinstance(value, ModuleType):
        return "module"
    return "callable" if callable(value) else type(value).__name__


def parameters(function: Any) -> list[tuple[str, str, str]] | None:
    """Names, kinds and defaults; None where Python cannot tell, or where any are taken."""
    try:
        found = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    shown = []
    for p in found:
        default = (
            "" if p.default is p.empty else re.sub(r" at 0x\w+|mind(?=torch)", "", repr(p.default))
        )
        if default.startswith(("<function", "<object", "<factory", "<torch._C.Generator")):
            default = "…"
        default = "()" if default == "torch.Size([])" else default
        shown.append((p.name, p.kind.name, default))
    return shown


def agrees(theirs: Any, ours: Any) -> bool:
    """Whether a call that torch takes is taken here too, by the same names and defaults."""
    there, here = parameters(theirs), parameters(ours)
    if there is None:
        return True
    if here is None or (here and here[-1][0] == "__"):  # `__`: it is refused, whatever it takes
        return here is not None
    names = {p[0] for p in there}
    here = [p for p in here if p[0] in names or p[0] not in MORE or p[1] != "KEYWORD_ONLY"]
    if here == there:
        return True
    plain = [p for p in there if p[1] not in ("VAR_POSITIONAL", "VAR_KEYWORD")]
    if not plain or (plain[0][0] in ("self", "cls") and len(plain) == 1):
        # `(*args, **kwargs)`: torch says nothing of what it takes.
        return len(plain) != len(there) or [p for p in here if p[0] != here[0][0]] == []
    return [(n, k[0] == "K", d) for n, k, d in here if k[:3] != "VAR"] == [
        (n, k[0] == "K", d) for n, k, d in plain
    ]


def members(cls: type) -> dict[str, Any]:
    """The public attributes of a class that it, or a base of torch's own, defines."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.partition(".")[0] in ("torch", "mindtorch"):
            found |= {n: v for n, v in vars(base).items() if n[0] != "_" or n in SPECIAL}
    return found


def of_class(theirs: type, ours: Any) -> Iterator[str]:
    """What a class of ours lacks of torch's, and its methods that take other parameters."""
    mine = members(ours)
    for name, there in members(theirs).items():
        if name not in SPECIAL and not hasattr(ours, name):
            yield f"-{name}"
        elif name in mine:
            plain = (staticmethod, classmethod)
            one = there.__func__ if isinstance(there, plain) else there
            other = mine[name].__func__ if isinstance(mine[name], plain) else mine[name]
            if inspect.isfunction(one) and callable(other) and not agrees(one, other):
                yield f"~{name}"


def of_module(name: str, seen: set[int]) -> Iterator[str]:
    """The differences of a module; what it shares with modules that were seen counts there."""
    theirs = public_names.of(public_names.torch, name)
    try:
        ours = public_names.of(mindtorch, name)
    except ImportError:
        yield "-"
        return
    for each in public_names.public(theirs):
        there = getattr(theirs, each, None)
        home = str(getattr(there, "__module__", None) or "torch")
        listed = hasattr(theirs, "__all__")
        if each[0] == "_" or isinstance(there, ModuleType) or not home.startswith("torch"):
            continue
        here = getattr(ours, each, seen)
        if here is seen:
            yield f"-{each}"
            continue
        if not listed and home != theirs.__name__ and (inspect.isclass(there) or callable(there)):
            continue
        if kind(there) != kind(here):
            yield f"!{each}"
        elif id(there) in seen:
            continue
        elif inspect.isclass(there):
            yield from (f"{d[0]}{each}.{d[1:]}" for d in of_class(there, here))
        elif callable(there) and not agrees(there, here):
            yield f"~{each}"
        seen.add(id(there))


def differences(start: str = "") -> dict[str, list[str]]:
    """Module → what differs, of all modules whose name starts so."""
    seen: set[int] = set()
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in public_names.torchs_modules():
            if name.startswith(start) and not f"{name}.".startswith(tuple(f"{a}." for a in APART)):
                found[name] = sorted(set(of_module(name, seen)))
    return {name: words for name, words in found.items() if words}


def known() -> dict[str, set[str]]:
    """The differences that remain, by module."""
    lines = [line.partition(":") for line in KNOWN.read_text().splitlines() if line[0] != "#"]
    return {m: set(w.split()) for modules, _, w in lines for m in modules.split(" ")}


def write(found: dict[str, list[str]]) -> None:
    """Modules that differ in the same way share a line."""
    groups: dict[str, list[str]] = {}
    for module, words in found.items():
        groups.setdefault(" ".join(words), []).append(module)
    head = "# What torch's public surface has otherwise: python -m tests.mindtorch.surface"
    lines = [f"{' '.join(modules)}: {words}" for words, modules in groups.items()]
    KNOWN.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--start", default="")
    options = parser.parse_args()
    found = differences(options.start)
    if options.write:
        write(found)
    for module, words in found.items():
        print(f"{module}: {' '.join(words)}")
    words = [w for each in found.values() for w in each]
    print({sign: sum(w[0] == sign for w in words) for sign in "-!~"})


if __name__ == "__main__":
    main()
