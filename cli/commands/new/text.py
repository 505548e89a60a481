"""Owns the text of a starting reference and its pytest file; guesses domains from a header alone.

What is guessed is a line of its own, so that it is easy to change; what must be written is marked.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from aclnn_bindings.interface.signature import Direction, Kind, OpSignature, Param

from ...conformance.cases.case import ACL_DTYPES

MARK: Final = "FILL IN"
# Short dtypes of the declaration language, by the name that mindtorch has.
_SHORT: Final = {
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "int8": "i8",
    "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "bool": "bool",
}  # fmt: skip
_FLOATS: Final = ("f16", "bf16", "f32")
_INTEGERS: Final = frozenset((
    Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64, Kind.UINT8, Kind.UINT16, Kind.UINT32,
    Kind.UINT64, Kind.SIZE, Kind.ENUM,
))  # fmt: skip
_VALUES: Final = {
    Kind.BOOL: "flag()", Kind.FLOAT: "number(1.0, 0.5)", Kind.DOUBLE: "number(1.0, 0.5)",
    Kind.STRING: 'choice("")', Kind.INT_ARRAY: 'ints("2", 1, 2)',
    Kind.FLOAT_ARRAY: 'numbers("2", 1.0, 0.5)', Kind.BOOL_ARRAY: "array((True, False))",
    Kind.TENSOR_LIST: 'tensors("2", "*S", "f32")',
}  # fmt: skip
_WORDS: Final = ("Rule", "array", "choice", "flag", "inout", "ints", "null", "number", "numbers",
                 "optional", "out", "scalar", "spec", "tensor", "tensors")  # fmt: skip
# Headers of AscendC projects are not told in and out apart by const alone: names decide there.
_ENDS: Final = ("Out", "Output", "OutOptional", "OutputOptional")


def results(op: OpSignature) -> list[Param]:
    """The parameters that receive results: those that the header or their name says, else the
    last tensor."""
    tensors = [p for p in op.params if p.kind in (Kind.TENSOR, Kind.TENSOR_LIST)]
    outs = [p for p in tensors if p.direction is Direction.OUT]
    outs = outs or [p for p in tensors if p.name in ("out", "output") or p.name.endswith(_ENDS)]
    writes = any(p.direction is Direction.INOUT for p in tensors)
    return outs or ([] if writes else tensors[-1:])


def reference(op: OpSignature) -> str:
    """A file that declares the operator and states its formula as far as a header tells it."""
    domains = dict(_domains(op))
    body = _keywords(domains)
    words = [w for w in _WORDS if w in ("Rule", "spec") or f"{w}(" in body]
    outs = {p.name for p in results(op)}
    inputs = [p.name for p in op.params if p.name not in outs]
    parameters = ", ".join(map(_name, inputs))
    return _REFERENCE.format(op=op.name, words=", ".join(words), body=body,
                             parameters=parameters, mark=MARK,
                             formula=_formula(op, inputs), function=function(op))  # fmt: skip


def tests(op: OpSignature, file: str) -> str:
    """A pytest file with an item for every case."""
    return _TESTS.format(op=op.name, file=file, function=function(op))


def function(op: OpSignature) -> str:
    """`aclnnScaledNorm` -> `scaled_norm`."""
    name = op.name.removeprefix("aclnn")
    text = "".join(f"_{c.lower()}" if c.isupper() and i and not name[i - 1].isupper() else
                   c.lower() for i, c in enumerate(name))  # fmt: skip
    return _name(text)


def _keywords(domains: Mapping[str, str]) -> str:
    """The domains as keywords of a call; from a name on that is a word of Python, in a dict."""
    names = list(domains)
    at = next((i for i, n in enumerate(names) if keyword.iskeyword(n)), len(names))
    lines = [f"    {n}={domains[n]}," for n in names[:at]]
    if at < len(names):
        lines += ["    **{", *(f'        "{n}": {domains[n]},' for n in names[at:]), "    },"]
    return "\n".join(lines)


def _name(text: str) -> str:
    return f"{text}_" if keyword.iskeyword(text) else text


def _domains(op: OpSignature) -> Iterator[tuple[str, str]]:
    outs = {p.name for p in results(op)}
    first = next((p.name for p in op.params if p.kind is Kind.TENSOR and p.name not in outs), "")
    for param in op.params:
        if param.name in outs:
            yield param.name, f'out("{first or "f32"}")'
            continue
        domain = _domain(param, first)
        if param.direction is Direction.INOUT:
            domain = f"inout({domain})"
        elif param.optional and param.kind in (Kind.TENSOR, Kind.TENSOR_LIST):
            domain = f"optional({domain})"
        yield param.name, domain


def _domain(param: Param, first: str) -> str:
    if param.kind is Kind.TENSOR:
        return f'tensor("*S", "{_dtypes(param, first)}")'
    if param.kind is Kind.SCALAR:
        return f'scalar("{first}")' if first else "number(1.0, 0.5)"
    if param.kind in _INTEGERS:
        return "number(1, 2)"
    return _VALUES.get(param.kind, 'null("no value can be guessed")')


def _dtypes(param: Param, first: str) -> str:
    """The dtypes of the header; without any, those of the first tensor, which has float32: what
    is declared has to be taken."""
    known = [_SHORT[n] for d in param.dtypes if (n := ACL_DTYPES.get(d, "")) in _SHORT]
    floats = [n for n in known if n in _FLOATS]
    if param.name == first or not first:
        return " ".join(known) or "f32"
    return first if floats or not known else " ".join(known)


def _formula(op: OpSignature, inputs: Sequence[str]) -> str:
    """A placeholder that runs: each result is the first tensor that comes in."""
    tensors = [p.name for p in op.params if p.kind is Kind.TENSOR and p.name in inputs]
    count = len(results(op)) + sum(p.direction is Direction.INOUT for p in op.params)
    placeholder = _name(tensors[0]) if tensors else "np.zeros(())"
    return "return " + ", ".join([placeholder] * max(count, 1))


_REFERENCE: Final = '''"""What {op} computes, for `mindtorch-npu check {op} --golden` and pytest.

docs/own_operators.md explains every word used here.
"""

import numpy as np
from mindtorch_npu.spec import {words}


# {mark}: the domains. Guessed from the header: dtypes where it states them, one shape for all
# tensors, usual numbers. `tensor("*B N")` names sizes; the same name is the same size.
# {mark}: the class of tolerance (exact, rounded, elementary, accumulated, composite) and the
# document that states the formula.
@spec(
    "{op}",
    Rule("composite", "the document of {op}"),
{body}
)
def {function}({parameters}):
    """Tensors arrive as numpy arrays (floats in float64), numbers as numbers, null as None.

    Results are returned in the header's order, as a tuple where there are several.
    """
    # {mark}: the formula. This placeholder runs, and is wrong unless {op} copies.
    {formula}
'''

_TESTS: Final = '''"""{op} against its reference: one pytest item for each case."""

from pathlib import Path

from mindtorch_npu.pytest_plugin import conformance

GOLDEN = Path(__file__).with_name("{file}")


@conformance("{op}", golden=GOLDEN)
def test_{function}(conformance_case):
    """Without an NPU: add simulator=True to the options above."""
'''
