"""Owns neighbours of samples: the same call with one attribute, size or optional tensor changed.

A row's samples show what an operator takes; its neighbours show that each argument counts. Which
there are stands in neighbours.json (`operators/neighbours.py` looks for them).
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any, Final

import numpy as np

from mindtorch.ops.samples import Arg, Sample

from .case import FILLS, Case, CaseNameError

FILE: Final = "neighbours.json"
# Numbers below it are modes and counts rather than sizes.
_LEAST: Final = 5
_NULL: Final = "null"


@cache
def stored() -> Mapping[str, str]:
    """By operator: `s0/eps=0.3 s1/axis=-2 | s0/32=4128`, those of `full` after the bar."""
    data = json.loads((files(__package__) / FILE).read_text("ascii"))
    neighbours: dict[str, str] = data["neighbours"]
    return neighbours


def neighbours(name: str, level: str) -> list[Case]:
    """The neighbours of an operator's samples at a level."""
    quick, _, full = stored().get(name, "").partition("|")
    texts = quick.split() + (full.split() if level != "quick" else [])
    return [case_of(name, text) for text in texts]


def case_of(name: str, text: str) -> Case:
    """The case of a neighbour as it stands in the file: a change, or the name of a fill."""
    sample, _, change = text.partition("/")
    if change in FILLS:
        return Case(name, "functional", int(sample[1:]), fill=change)
    return Case(name, "functional", int(sample[1:]), detail=change)


def changed(sample: Sample, change: str) -> Sample:
    """The sample with `NAME=VALUE`, or with every size N as M by `N=M`.

    CaseNameError where it has no such argument.
    """
    name, _, text = change.partition("=")
    if name.isdigit():
        return _resized(sample, int(name), int(text))
    if name not in sample.kwargs:
        raise CaseNameError(
            f"no argument {name!r} in the sample; it has {', '.join(sample.kwargs)}"
        )
    return Sample(sample.args, {**sample.kwargs, name: _value(text)}, sample.error)


def _value(text: str) -> Any:
    if text == _NULL:
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def text_of(value: Any) -> str:
    """The text that `changed` reads back; without spaces."""
    if value is None:
        return _NULL
    return value if isinstance(value, str) else repr(value).replace(" ", "")


def _resized(sample: Sample, old: int, new: int) -> Sample:
    """Sizes of tensors, and whole numbers that name the same size, from `old` to `new`. What holds
    given values (indices) repeats them."""

    def sized(arg: Arg) -> Arg:
        shape, values = tuple(new if n == old else n for n in arg.shape), arg.values
        for axis, n in enumerate(arg.shape if values is not None else ()):
            if n == old:
                values = np.take(np.asarray(values), np.arange(new) % old, axis)
        return replace(arg, shape=shape, values=values)

    args, kwargs = sample.map(sized)
    return Sample(tuple(args), {k: _number(v, old, new) for k, v in kwargs.items()}, sample.error)


def _number(value: Any, old: int, new: int) -> Any:
    if isinstance(value, tuple):
        return tuple(_number(v, old, new) for v in value)
    return new if type(value) is int and value == old >= _LEAST else value
