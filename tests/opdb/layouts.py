"""Writes `mindtorch/_compat/layout_refusals.txt`: what torch says of functions of other layouts.

`python -m tests.opdb.layouts` calls every function of torch that mindtorch has a row or method of,
on a matrix of each layout with ordinary arguments, and keeps the operator whose kernel is missing
or the error. Texts with figures are left out: they say sizes.
"""

import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

import mindtorch
from mindtorch._compat import layout_refusals
from mindtorch._compat.layout_refusals import pattern
from mindtorch._dispatch.overrides import OF_OPERATORS
from mindtorch.ops.spec import OPS

PLACE = Path(layout_refusals.__file__).with_suffix(".txt")
SPACES = {"linalg_": torch.linalg, "fft_": torch.fft, "special_": torch.special}
SKIPPED = ("backward", "cuda", "data", "load", "share_memory_", "register_hook", "to_sparse")
_SIZES = re.compile(r"\d|\n|internal|INTERNAL|argument|^$")
_MISSING = re.compile(r"Could not run 'aten::([\w.]+)' with arguments from the")


def tensors() -> dict[str, torch.Tensor]:
    """A matrix of each kind of tensors, by the name of its backend's key."""
    matrix = torch.tensor([[0.0, 0.5], [1.0, 0.0]])
    return {
        "Sparse": matrix.to_sparse(),
        "SparseCsr": matrix.to_sparse_csr(),
        "Quantized": torch.quantize_per_tensor(matrix, 0.1, 10, torch.quint8),
        "NestedTensor": torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)]),
    }


def function(name: str) -> Callable[..., Any] | None:
    """torch's method or function that mindtorch calls so."""
    method: Callable[..., Any] | None = getattr(torch.Tensor, name, None)
    if callable(method):
        return method
    homes = [(home, name.removeprefix(p)) for p, home in SPACES.items() if name.startswith(p)]
    homes += [(torch, name), (torch.nn.functional, name)]
    candidates: Iterator[Callable[..., Any] | None] = (getattr(h, n, None) for h, n in homes)
    return next((f for f in candidates if callable(f)), None)


def arguments(tensor: torch.Tensor) -> Iterator[tuple[Any, ...]]:
    """What calls give beside the tensor."""
    dense = torch.ones(2, 2)
    index = torch.zeros(1, dtype=torch.int64)
    yield from ((), (1,), (tensor,), (dense,), (0, 1), ((0, 1),), (0, index), (tensor, tensor))
    yield from ((dense > 0, 1.0), ((2, 2),), (0, 0, 1))


def answer(run: Callable[..., Any], tensor: torch.Tensor, more: tuple[Any, ...]) -> str:
    """The operator that torch misses, or its error as `Class: text`; "" where it computes."""
    try:
        run(tensor.clone(), *more)
    except Exception as error:
        text = str(error)
        if missing := _MISSING.match(text):
            return missing[1]
        return (
            "?"
            if _SIZES.search(re.sub(r"issues/\d+", "", text))
            else f"{type(error).__name__}: {text}"
        )
    return ""


def lines() -> list[str]:
    """A line for each kind and answer, with functions and arguments; `*`: all miss one kernel."""
    alike: dict[tuple[str, str, str], list[str]] = {}
    for kind, name, args, text in answers_of_all():
        alike.setdefault((kind, args, text), []).append(name)
    return [f"{k} {','.join(names)} {args} {text}" for (k, args, text), names in alike.items()]


def answers_of_all() -> Iterator[tuple[str, str, str, str]]:
    """Kind, function, arguments with commas between them, and what torch says of them."""
    names = {op.base_name for op in OPS.values()} | {*dir(mindtorch.Tensor)}
    names.update(dir(mindtorch.nn.functional), (n for n in dir(mindtorch) if n.endswith("_like")))
    names = {n for n in names if n[0] != "_" or n in OF_OPERATORS.values()}
    for kind, tensor in tensors().items():
        for name in sorted(names.difference(SKIPPED)):
            if (run := function(name)) is None:
                continue
            answers: dict[str, str] = {}
            every = True
            for more in arguments(tensor):
                plain = [torch.ones(2, 3, 3) if a is tensor else a for a in (tensor, *more)]
                text = answer(run, tensor, more)
                if text and text == answer(run, plain[0], (*plain[1:],)):
                    continue  # strided tensors are refused too
                every &= text != "?"
                if text != "?":
                    answers.setdefault(pattern((tensor, *more)), text)
            several = {*answers.values()}
            for text in sorted(several - {""}):
                args = ",".join(a for a, s in answers.items() if s == text)
                if text == name and kind != "NestedTensor":
                    continue  # that is what the library says by itself
                short = "=" if text == name else text
                alike = len(several) == 1 and ":" not in text and (every or kind != "Quantized")
                yield kind, name, "*" if alike else args, short


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    head = "# What torch 2.13 says of other layouts: kind, functions, arguments, operator or error."
    PLACE.write_text("\n".join([head, f"# Written by {__spec__.name}.", *lines()]) + "\n")
