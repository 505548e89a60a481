"""Writes `mindtorch/_compat/signatures.py`: the signatures that torch lists where none fits.

`python -m tests.opdb.signatures` calls every function and method of torch that mindtorch has with
objects that nothing takes, and reads names, types and defaults from what is said.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import mindtorch
from mindtorch._compat.argument_errors import method_rows

PLACE = Path(__file__).parents[2] / "mindtorch" / "_dispatch" / "signatures.py"
OPTIONS = (
    "torch.dtype dtype = None, torch.layout layout = None, torch.device device = None,"
    " bool pin_memory = False, bool requires_grad = False"
)
MOST = 9  # arguments that are tried
HEAD = '''"""Owns torch's signatures of names that have several, by name; `.name` is a method's.

Written by tests/opdb/signatures.py from what torch 2.13 says of calls that fit none; not edited.
"""
# ruff: noqa: E501

OPTIONS = (
    "torch.dtype dtype = None, torch.layout layout = None, torch.device device = None,"
    " bool pin_memory = False, bool requires_grad = False"
)
TEXT = """
'''
SPACES = {"": torch, "special_": torch.special, "linalg_": torch.linalg, "fft_": torch.fft}


class Unfit:
    """What no signature takes."""


def signatures(function: Callable[..., Any]) -> list[str]:
    """The signatures that torch lists for calls with wrong arguments; none where it has one."""
    for count in range(MOST):
        try:
            function(*[Unfit()] * count)
        except TypeError as error:
            _, _, listed = str(error).partition("but expected ")
            if listed:
                rows = listed.removeprefix("one of:\n").splitlines()
                return [r.removeprefix(" * ") for r in rows if r.startswith((" * ", "("))]
        except Exception:
            continue
    return []


def _names(space: Any, ours: Any) -> list[str]:
    builtin = type(torch.add), type(torch.Tensor.add)
    named = [n for n in dir(space) if hasattr(ours, n) and not n.startswith(("_", "set_"))]
    return [n for n in named if isinstance(getattr(space, n, None), builtin)] + ["set_"] * (
        space is torch.Tensor
    )


def found() -> dict[str, list[str]]:
    """Every name with its signatures."""
    all_of: dict[str, list[str]] = {}
    for prefix, space in SPACES.items():
        ours = getattr(mindtorch, prefix[:-1]) if prefix else mindtorch
        for name in _names(space, ours):
            all_of[prefix.replace("fft_", "") + name] = signatures(getattr(space, name))
    for name in ("conv1d", "conv2d", "conv3d"):
        all_of[name] = signatures(getattr(torch, name))
    tensor = torch.ones(2, 2)
    for name in _names(torch.Tensor, mindtorch.Tensor):
        all_of["." + name] = signatures(getattr(tensor, name))
    return {name: rows for name, rows in sorted(all_of.items()) if rows != _derived(name, all_of)}


def _derived(name: str, all_of: dict[str, list[str]]) -> list[str]:
    """What a method's signatures are where nothing else is written: those of the function."""
    return method_rows(all_of.get(name[1:].rstrip("_"), [])) if name[0] == "." else []


def main() -> None:
    warnings.simplefilter("ignore")
    lines = []
    for name, rows in found().items():
        lines += [name, *(" " + row.replace(OPTIONS, "<options>") for row in rows)]
    PLACE.write_text(HEAD + "\n".join(lines) + '\n"""\n')


if __name__ == "__main__":
    main()
