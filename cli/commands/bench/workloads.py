"""Owns what is timed: an op, shapes and dtype, from its row, options or a named set."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from mindtorch.ops import OPS, Op
from mindtorch.ops.costs import Cost, elements
from mindtorch.ops.samples import Arg, Sample
from mindtorch.ops.schema import ArgKind

from ...choices import one_of
from ...conformance.cases.inputs import main_dtype, samples, tensors_of
from ...conformance.cases.recipe import Recipe
from ...judge.precision import Array
from ...plurals import plural

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Workload:
    """One thing to time: `sample` says the arguments, tensors as descriptions."""

    op: str
    sample: Sample
    dtype: str
    label: str = ""
    enlarged: bool = False

    @property
    def shapes(self) -> tuple[Shape, ...]:
        return tuple(a.shape for a in tensors_of(self.sample))

    @property
    def name(self) -> str:
        """`add float16 1024x1024,1024x1024`: what a baseline knows it by."""
        shapes = ",".join("x".join(map(str, s)) or "scalar" for s in self.shapes)
        return " ".join(p for p in (self.op, self.dtype, shapes, self.label) if p)


class WorkloadError(ValueError):
    """Shapes or a set that an op cannot take; the message says what is expected."""


# Sizes of a default workload by rank of the largest tensor: about a million elements.
_SIZES: Final = {1: (1 << 20,), 2: (1024, 1024), 3: (16, 256, 256), 4: (8, 32, 64, 64)}


def default(op: Any, dtype: str) -> Workload:
    """The row's first sample, enlarged: small sizes grow alike, so that products still fit."""
    sample = _first(op)
    tensors = tensors_of(sample)
    biggest = max(tensors, key=lambda a: len(a.shape), default=Arg())
    sizes = _SIZES.get(len(biggest.shape), ())
    order = [n for n in dict.fromkeys(n for a in tensors for n in a.shape) if n > 1]
    fixed = {n for a in tensors if a.values is not None for n in a.shape}
    flexible = not any(_has_number(a) for a in sample.args) or len(tensors) == len(sample.args)
    if not sizes or not flexible:
        return _typed(op, sample, dtype)
    grown = {n: sizes[min(i, len(sizes) - 1)] for i, n in enumerate(order) if n not in fixed}
    changed = _resized(sample, [tuple(grown.get(n, n) for n in a.shape) for a in tensors])
    return replace(_typed(op, changed, dtype), enlarged=True)


def small(op: Any, dtype: str) -> Workload:
    """The row's first sample as it is: small enough that only the host counts."""
    return _typed(op, _first(op), dtype)


def _first(op: Any) -> Sample:
    good = [s for s in samples(op.testing if isinstance(op, Op) else op) if not s.error]
    if not good:
        raise WorkloadError(f"{op.name}: its row has no samples, so it has no workload")
    return good[0]


def _has_number(value: Any) -> bool:
    return isinstance(value, list | tuple) and any(isinstance(v, int) for v in value)


def _resized(sample: Sample, shapes: Sequence[Shape]) -> Sample:
    left = list(shapes)

    def change(arg: Arg) -> Arg:
        shape = left.pop(0)
        return arg if arg.values is not None else replace(arg, shape=shape)

    args, kwargs = sample.map(change)
    return Sample(tuple(args), kwargs)


def _typed(op: Any, sample: Sample, dtype: str, label: str = "") -> Workload:
    main = main_dtype(tensors_of(sample))
    # Few operators and fewer NPUs take float64: unless asked for, float32 is timed.
    target = dtype or ("float32" if main == "float64" else main)
    args, kwargs = sample.map(lambda a: replace(a, dtype=target) if a.dtype == main else a)
    return Workload(op.name, Sample(tuple(args), kwargs), target, label)


def parse_shapes(text: str) -> list[Shape]:
    """`1024x1024,1024` as shapes; WorkloadError for anything else."""
    shapes = []
    for part in text.split(","):
        if part != "scalar" and not re.fullmatch(r"\d+(x\d+)*", part):
            raise WorkloadError(f"--shapes {text!r}: {part!r} is no shape such as 1024x1024")
        shapes.append(() if part == "scalar" else tuple(int(n) for n in part.split("x")))
    return shapes


def shaped(op: Any, shapes: Sequence[Shape], dtype: str, label: str = "") -> Workload:
    """The first sample with these shapes; one shape serves all tensors."""
    sample = _first(op)
    tensors = tensors_of(sample)
    if len(shapes) not in (1, len(tensors)):
        raise WorkloadError(
            f"{op.name}: {plural(len(shapes), 'shape')} given, its tensors are {len(tensors)}: "
            f"{', '.join('x'.join(map(str, a.shape)) for a in tensors)}"
        )
    every = list(shapes) * len(tensors) if len(shapes) == 1 else list(shapes)
    return _typed(op, _scaled(op, sample, _resized(sample, every)), dtype, label)


def _scaled(op: Any, sample: Sample, resized: Sample) -> Sample:
    """The sample with an output that grows as the input does, where the op sets its size."""
    at = _place(op, "output_size")
    if at is None or "upsample" not in op.name or not isinstance(sample.args[at], tuple):
        return resized
    before, now = tensors_of(sample)[0].shape, tensors_of(resized)[0].shape
    sizes = sample.args[at]
    ratios = [n / b for n, b in zip(now[-len(sizes) :], before[-len(sizes) :], strict=True)]
    size = tuple(max(1, round(n * ratio)) for n, ratio in zip(sizes, ratios, strict=True))
    return replace(resized, args=(*resized.args[:at], size, *resized.args[at + 1 :]))


def parse_arguments(texts: Sequence[str]) -> dict[str, Any]:
    """`align_corners=True` as a name and a value of Python; words stay texts."""
    values = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (equals and name.isidentifier()):
            raise WorkloadError(f"--arg {text!r}: give NAME=VALUE, such as align_corners=True")
        try:
            values[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            values[name] = value
    return values


def with_arguments(op: Any, work: Workload, values: Mapping[str, Any]) -> Workload:
    """The workload with these values for arguments that are no tensors; they end its name."""
    args, kwargs = list(work.sample.args), dict(work.sample.kwargs)
    for name, value in values.items():
        at = _place(op, name)
        old = kwargs.get(name) if at is None or at >= len(args) else args[at]
        if at is None and name not in kwargs:
            raise WorkloadError(f"--arg {name} of {op.name}: {one_of(name, _names(op, kwargs))}")
        if isinstance(old, Arg):
            raise WorkloadError(f"--arg {name}: a tensor of {op.name}; give --shapes or --dtype")
        if at is not None and at < len(args):
            args[at] = _as_sizes(op, at, value)
        else:
            kwargs[name] = value
    words = " ".join([work.label] * bool(work.label) + [f"{n}={v}" for n, v in values.items()])
    return replace(work, sample=replace(work.sample, args=tuple(args), kwargs=kwargs),
                   label=words.replace(", ", ","))  # fmt: skip


def _as_sizes(op: Op, at: int, value: Any) -> Any:
    """A number as the list that a schema asks for."""
    listed = op.schema.args[at].kind is ArgKind.INTS and isinstance(value, int)
    return (value,) if listed else value


def _place(op: Any, name: str) -> int | None:
    """Where a row's schema has an argument; None where it has none, and for other operators."""
    if not isinstance(op, Op):
        return None
    return next((i for i, arg in enumerate(op.schema.args) if arg.name == name), None)


def _names(op: Any, kwargs: Mapping[str, Any]) -> list[str]:
    return [arg.name for arg in op.schema.args] if isinstance(op, Op) else list(kwargs)


# name -> (op, shapes, label). Sizes from the published configurations of GPT-2 and ResNet-50.
SETS: Final[dict[str, tuple[tuple[str, tuple[Shape, ...], str], ...]]] = {
    "gpt-block": (
        ("matmul", ((1024, 768), (768, 2304)), "qkv"),
        ("matmul", ((12, 1024, 64), (12, 64, 1024)), "scores"),
        ("_softmax", ((12, 1024, 1024),), "attention"),
        ("matmul", ((12, 1024, 1024), (12, 1024, 64)), "values"),
        ("matmul", ((1024, 768), (768, 3072)), "mlp up"),
        ("gelu", ((1024, 3072),), "mlp"),
        ("matmul", ((1024, 3072), (3072, 768)), "mlp down"),
        ("add", ((1024, 768), (1024, 768)), "residual"),
    ),
    "resnet": (
        ("relu", ((8, 64, 112, 112),), "stem"),
        ("add", ((8, 256, 56, 56), (8, 256, 56, 56)), "residual"),
        ("relu", ((8, 2048, 7, 7),), "last"),
        ("mean", ((8, 2048, 49),), "pool"),
        ("matmul", ((8, 2048), (2048, 1000)), "classifier"),
    ),
}


def named_set(name: str, dtype: str) -> list[Workload]:
    """The workloads of a set whose ops have rows; WorkloadError for an unknown set."""
    if name not in SETS:
        raise WorkloadError(f"--set {name}: {one_of(name, SETS)}")
    return [shaped(OPS[op], shapes, dtype, label) for op, shapes, label in SETS[name] if op in OPS]


def cost(op: Op | None, recipe: Recipe, outs: Sequence[Array]) -> Cost:
    """Bytes and operations of one call, as its row counts them; without a row, of its elements."""
    args, kwargs = recipe.fill(lambda slot: slot.array)
    if op is None:
        return elements({str(i): a for i, a in enumerate(args)} | kwargs, outs)
    names = [a.name for a in op.schema.args]
    return op.testing.cost(dict(zip(names, args, strict=False)) | kwargs, outs)
