"""References of the spec rows hold against torch where torch has the operator.

Of others the second formulation is the kernel: `tests/cli/conformance/test_every_kernel.py`.
"""

import sys
import types
from pathlib import Path

import numpy as np
import pytest
from mindtorch_npu.conformance.operators import rows
from mindtorch_npu.conformance.operators.row import SPECS, UNSPECIFIED
from mindtorch_npu.conformance.operators.source_files import checkout, places

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent))
from oracles import ORACLES  # noqa: E402
from oracles._arguments import arguments, python, results, samples, t  # noqa: E402

F = torch.nn.functional
SAMPLES = 3
# torch computes these in float32, or the sample gives what was rounded to it.
SINGLE = frozenset((
    "aclnnAngleV2", "aclnnApplyAdamW", "aclnnCdistBackward", "aclnnGRUBackward",
    "aclnnLstmBackward",
))  # fmt: skip


def in_torch(formula):
    """The formula of a row with torch in mindtorch's place, in the functions that it calls too."""
    return _in_torch(formula, {})


def _in_torch(function, spaces):
    space = spaces.get(function.__module__)
    if space is None:
        space = spaces[function.__module__] = {**function.__globals__, "torch": torch, "F": F}
        for name, value in list(space.items()):
            if isinstance(value, types.FunctionType) and value.__module__.startswith(rows.__name__):
                space[name] = _in_torch(value, spaces)
    cells = tuple(types.CellType(_word(c.cell_contents)) for c in function.__closure__ or ())
    defaults = tuple(_word(v) for v in function.__defaults__ or ())
    return types.FunctionType(function.__code__, space, function.__name__, defaults, cells)


def _word(value):
    """torch's function of the same name in place of mindtorch's."""
    if not callable(value):
        return value
    return getattr(F, value.__name__, None) or getattr(torch, value.__name__, value)


rows.declare_all()
WORDED = sorted(n for n, r in SPECS.items() if hasattr(r.reference, "__wrapped__"))


@pytest.mark.parametrize("name", WORDED)
def test_a_formula_in_words_gives_the_same_in_torch(name):
    row = SPECS[name]
    formula = in_torch(row.reference.__wrapped__)
    for sample in range(min(SAMPLES, len(samples(row.samples)))):
        values = arguments(row, sample)
        ours = results(row, values)
        taken = formula.__code__.co_varnames[: formula.__code__.co_argcount]
        own = [p for p in values if python(p) in taken and not p.startswith("_")]
        inflow = [p for p, v in values.items()
                  if python(p) not in taken and isinstance(v, np.ndarray)]  # fmt: skip
        fed = {python(p): t(values[p]) for p in own}
        leaves = [p for p in getattr(row.reference, "leaves", ()) if fed[p] is not None]
        for p in leaves:
            fed[p].requires_grad_()
        theirs = formula(**fed)
        theirs = list(theirs) if isinstance(theirs, tuple | list) else [theirs]
        if not leaves:
            compare(ours, theirs)
            continue
        flows = [t(values[p]).reshape(o.shape) for p, o in zip(inflow, theirs, strict=False)]
        grads = torch.autograd.grad(theirs[: len(flows)], [fed[p] for p in leaves], flows,
                                    allow_unused=True)  # fmt: skip
        # torch keeps some constants in float32: hardsigmoid's sixth.
        every = [g for g in grads if g is not None]
        for value in (o for o in ours if o is not None):
            assert any(g.shape == value.shape and np.allclose(g, value, 1e-7, 1e-9, True)
                       for g in every) or not value.any()  # fmt: skip


def compare(ours, theirs):
    shown = [o for o in ours if o is not None]
    assert len(shown) == len(theirs)
    for mine, other in zip(shown, theirs, strict=True):
        other = other.detach().numpy() if isinstance(other, torch.Tensor) else np.asarray(other)
        np.testing.assert_allclose(mine.reshape(other.shape), other, 1e-9, 1e-11)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ORACLES)
def test_a_reference_gives_what_torch_gives(name):
    row, compared = SPECS[name], 0
    loose = (1e-5, 1e-6) if name in SINGLE else (1e-9, 1e-10)
    for sample in range(len(samples(row.samples))):
        values = arguments(row, sample)
        theirs = ORACLES[name](values)
        if theirs is None:
            continue
        theirs = list(theirs) if isinstance(theirs, tuple | list) else [theirs]
        for mine, other in zip(results(row, values), theirs, strict=False):
            if mine is not None and other is not None:
                other = other.detach().numpy()
                np.testing.assert_allclose(mine.reshape(other.shape), other, *loose)
                compared += 1
    assert compared


def test_every_row_states_class_reason_and_source():
    for name, row in SPECS.items():
        need = row.requirement()
        assert need.reason, name
        assert len(row.source) > 10, name
        assert list(row.samples()), name
    for name, row in UNSPECIFIED.items():
        assert row.known, name
        assert row.source, name


@pytest.mark.skipif(checkout() is None, reason="no source checkout")
def test_every_reference_has_a_second_formulation():
    compared = {*ORACLES, *WORDED}
    alone = [n for n in SPECS if n not in compared and not places(n).kernel]
    assert not alone, f"give these an oracle or a kernel: {alone}"
