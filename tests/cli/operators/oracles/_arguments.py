"""The arguments that a reference gets for a sample, its results, tensors and gradients of torch."""

import keyword
from functools import lru_cache

import numpy as np
import torch
from mindtorch_npu.conformance.cases.case import Case
from mindtorch_npu.conformance.cases.recipe import Slot, recipe
from mindtorch_npu.conformance.operators import rows
from mindtorch_npu.conformance.operators.row import MISSING

rows.declare_all()


class Row:
    """A spec row with what a recipe asks a subject for."""

    def __init__(self, row):
        self.row, self.name = row, row.name

    def samples(self):
        return samples(self.row.samples)


@lru_cache(maxsize=1)
def samples(calls):
    """The samples of a row, drawn once for all that one test asks of them."""
    return list(calls())


def arguments(row, sample):
    """What the reference gets for a sample, by its own parameter names."""
    inputs = recipe(Row(row), Case(row.name, "functional", sample), 0).kwargs
    values = {}
    for name, default in row.parameters().items():
        value = inputs.get(name, default)
        values[name] = None if value is MISSING else _host(value)
    return values


def _host(value):
    if isinstance(value, Slot):
        a = value.array
        return a.astype(np.float64) if a.dtype.kind == "f" or a.dtype.kind == "V" else a
    return [_host(v) for v in value] if isinstance(value, list) else value


def python(name):
    return name + "_" if keyword.iskeyword(name) else name


def results(row, values):
    """The arrays of a reference's results, lists flattened."""
    outputs = row.reference(**{python(k): v for k, v in values.items()})
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    flat = []
    for value in outputs:
        flat += value if isinstance(value, list) else [value]
    return [None if v is None else np.asarray(v) for v in flat]


def t(value):
    """Arrays as tensors of torch, lists too."""
    if isinstance(value, np.ndarray):
        return torch.from_numpy(np.array(value, order="C"))
    return [t(v) for v in value] if isinstance(value, list) else value


def autograd(formula, *leaves, flow):
    made = [t(x).requires_grad_() for x in leaves]
    outs = formula(*made)
    return list(torch.autograd.grad(outs, made, [t(f) for f in flow]
                                    if isinstance(outs, tuple) else t(flow)))  # fmt: skip
