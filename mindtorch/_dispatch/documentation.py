"""Owns what `help` shows of an op: a sentence, its schema, shapes, dtypes, NPU operators, errors.

Everything follows from the row's declaration; an entry asks for it when it is made.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence

from ..ops.rules import Pointwise
from ..ops.schema import ArgKind
from ..ops.spec import MISSING, SPACES, Op

_TENSORS = frozenset((ArgKind.TENSOR, ArgKind.OPTIONAL_TENSOR, ArgKind.UNION))
# Forms that write to their first argument.
WRITING = frozenset(("inplace", "augmented"))
_LISTS = frozenset((ArgKind.TENSORS, ArgKind.OPTIONAL_TENSORS))
# Groups of `unsupported` in words.
_GROUPS = {
    "whole": "integers", "narrow": "integers other than int64", "short": "uint8, int8, int16",
    "signed": "signed integers", "half": "float16, bfloat16", "real": "float32, float64",
}  # fmt: skip
_RESULTS = {
    "same": "the result has the common dtype of the operands",
    "float": "integers become the default dtype",
    "bool": "the result is bool",
    "real": "the result of complex elements is real",
}


def document(rows: Sequence[Op], form: str) -> str:
    """What `help` shows of the rows that one name stands for in a form of `entry.py`."""
    first = rows[0]
    start = "In place: " * (form in WRITING) + summary(first)
    return "\n".join([start, "", *(op.text for op in rows), "", *_about(first, form)])


def summary(op: Op) -> str:
    """What an op computes: the row's words, its body's docstring, else what its schema says."""
    if op.api.summary:
        return op.api.summary
    for source in (op.body, op.lower):
        if inspect.isfunction(source):
            text = inspect.getdoc(source)
            if text:
                return text
    return _by_schema(op)


def _by_schema(op: Op) -> str:
    name = op.base_name.removeprefix("_foreach_")
    for space in SPACES:
        name = name.removeprefix(f"{space}_")
    operands = [f"`{a.name}`" for a in op.schema.args if a.kind in _TENSORS]
    listed = ", ".join(operands[:-1]) + " and " * (len(operands) > 1) + "".join(operands[-1:])
    if op.family == "foreach":
        return f"`{name}` of each tensor of the list."
    if name.endswith("_copy"):
        return f"A copy of what `{name.removesuffix('_copy')}` shows of {listed}."
    if op.is_view:
        return f"`{name}` of {listed}: a view where the strides allow it."
    if isinstance(op.infer, Pointwise):
        return f"`{name}` of {listed}, element by element."
    along = " along `dim`" if any(a.name == "dim" for a in op.schema.args) else ""
    if not operands:
        lists = any(a.kind in _LISTS for a in op.schema.args)
        return f"`{name}` of a list of tensors." if lists else f"A new tensor: `{name}`."
    return f"`{name}` of {listed}{along}."


def _about(op: Op, form: str) -> Iterator[str]:
    if shapes := _shapes(op):
        yield f"Shapes: {shapes}."
    yield f"Dtypes: {_dtypes(op)}."
    yield f"On npu: {_on_npu(op)}."
    if op.grad is not MISSING or op.body is None:
        keys = () if op.grad is MISSING else op.grad
        names = ", ".join(n for key in keys for n in ((key,) if isinstance(key, str) else key))
        yield f"Differentiable in: {names}." if names else "Not differentiable."
    yield "Raises:"
    yield from (f"    {error}" for error in _raises(op, form))


def _shapes(op: Op) -> str:
    names = {a.name for a in op.schema.args}
    operands = [a.name for a in op.schema.args if a.kind in _TENSORS]
    if op.is_view:
        where = " where the strides allow it" if op.body else ""
        return f"the result shares the memory of `{operands[0]}`{where}" if operands else ""
    if op.family == "foreach":
        return "those of the tensors of the list"
    if isinstance(op.infer, Pointwise):
        if len(operands) > 1:
            return f"{', '.join(operands)} broadcast; the result has their common shape"
        return "the result has the input's shape"
    if "keepdim" in names:
        return "the result lacks the reduced dimensions; with keepdim=True they have size 1"
    sizes = [f"`{a.name}`" for a in op.schema.args if a.kind is ArgKind.INTS]
    return f"{' and '.join(sizes)} set the sizes" if sizes and not operands else ""


def _dtypes(op: Op) -> str:
    groups = [word for text in op.dtypes.unsupported for word in text.split()]
    refused = ", ".join(dict.fromkeys(_GROUPS.get(word, word) for word in groups))
    claims = f"not on cpu: {refused}" if refused else "those that torch takes"
    if isinstance(op.infer, Pointwise):
        return f"{claims}; {_RESULTS[op.infer.kind]}"
    return claims


def _on_npu(op: Op) -> str:
    if "npu" in op.kernels.absent:
        return f"not supported: {op.kernels.absent['npu']}"
    names = list(dict.fromkeys(call.name for call in op.kernels.aclnn))
    if names:
        return ", ".join(names)
    return "a view, without an operator" if op.is_view else "made of other operators"


def _raises(op: Op, form: str) -> Iterator[str]:
    args = op.schema.args
    yield "TypeError: a missing argument, or one of another type than the schema's."
    if any(a.name in ("dim", "dims", "dim0", "dim1") for a in args):
        yield "IndexError: a dimension that the tensor does not have."
    operands = [a for a in args if a.kind in _TENSORS or a.kind in _LISTS]
    if len(operands) > 1 or any(a.kind in _LISTS for a in args):
        yield "RuntimeError: shapes that do not fit each other, or tensors of two devices."
    elif any(a.kind is ArgKind.INTS for a in args):
        yield "RuntimeError: sizes that do not fit the tensor."
    if op.dtypes.unsupported:
        yield "RuntimeError, NotImplementedError: a dtype that the device does not support."
    if form == "function" and op.body is None:
        yield "RuntimeError: a result that `out=` cannot store."
    if form in WRITING:
        yield "RuntimeError: a leaf that requires grad, or a result that its dtype cannot store."
