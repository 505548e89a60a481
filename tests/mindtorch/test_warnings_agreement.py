"""Programs get the warnings that torch gives."""

import re
import warnings

import numpy as np
import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")

CALLS = {
    "coo": lambda t: t.sparse_coo_tensor([[0]], [1.0]),
    "csr": lambda t: t.sparse_csr_tensor([0, 1], [0], [1.0]),
    "T of a vector": lambda t: t.ones(2).T,
    "T of a matrix": lambda t: t.ones(2, 2).T,
    "T of a batch": lambda t: t.ones(2, 2, 2).T,
    "chain_matmul": lambda t: t.chain_matmul(t.ones(2, 3), t.ones(3, 2)),
    "grid_sample": lambda t: t.nn.functional.grid_sample(t.ones(1, 1, 2, 2), t.ones(1, 1, 1, 2)),
    "affine_grid": lambda t: t.nn.functional.affine_grid(t.ones(1, 2, 3), (1, 1, 2, 2)),
    "aligned": lambda t: t.nn.functional.affine_grid(t.ones(1, 2, 3), (1, 1, 2, 2), True),
    "arrays": lambda t: t.tensor([np.ones(2), np.ones(2)]),
    "read-only buffer": lambda t: t.frombuffer(b"ab", dtype=t.int8),
    "list of lists": lambda t: t.ones(2, 3)[[[0]]],
    "list": lambda t: t.ones(2, 3)[[0]],
    "list of slices, written": lambda t: t.ones(2, 3).__setitem__([slice(0, 1)], 1),
    "complex to real": lambda t: t.ones(2, dtype=t.complex64).float(),
    "kl_div": lambda t: t.nn.functional.kl_div(t.ones(2, 3), t.ones(2, 3)),
    "scripted module": lambda t: t.jit.script(t.nn.Linear(2, 2)),
    "cross": lambda t: t.cross(t.ones(3, 3), t.ones(3, 3)),
    "cholesky": lambda t: t.cholesky(t.eye(2)),
    "qr": lambda t: t.eye(2).qr(),
    "lu": lambda t: t.lu(t.eye(2)),
    "cuda.amp scaler": lambda t: t.cuda.amp.GradScaler(enabled=False),
    "cuda.amp": lambda t: t.cuda.amp.autocast(enabled=False),
    "cpu.amp": lambda t: t.cpu.amp.autocast(enabled=False),
    "default type": lambda t: t.set_default_tensor_type(t.FloatTensor),
    "float of what requires grad": lambda t: float(t.ones(1, requires_grad=True)),
    "int of what requires grad": lambda t: int(t.ones(1, requires_grad=True)),
    "read-only array": lambda t: t.from_numpy(np.broadcast_to(np.float32(1), (2,))),
    "planes without a batch": lambda t: t.nn.functional.dropout2d(t.ones(2, 3, 4)),
    "checkpoint": lambda t: t.utils.checkpoint.checkpoint(
        lambda x: x * 2, t.ones(1, requires_grad=True)
    ),
    "spread of one": lambda t: (t.ones(1).std(), t.ones(1, 2).var(0), t.ones(2).var()),
    "spread of none": lambda t: t.ones(0).var(),
    "means of none": lambda t: (t.ones(0).mean(), t.nn.functional.mse_loss(t.ones(0), t.ones(0))),
    **{
        f"encoder {options}": lambda t, options=options: t.nn.TransformerEncoder(
            t.nn.TransformerEncoderLayer(6, **options), 1
        )
        for options in (
            {"nhead": 2},
            {"nhead": 2, "batch_first": True},
            {"nhead": 3, "batch_first": True},
            {"nhead": 2, "batch_first": True, "norm_first": True},
            {"nhead": 2, "batch_first": True, "bias": False},
            {"nhead": 2, "batch_first": True, "activation": "gelu"},
        )
    },
    "own activation": lambda t: t.nn.TransformerEncoder(
        t.nn.TransformerEncoderLayer(6, 2, activation=t.nn.Tanh(), batch_first=True), 1
    ),
    "transformer": lambda t: t.nn.Transformer(6, 2, 1, 1, 8),
}


def given(t, call):
    """(class, text) of each warning, without where in torch's source it comes from."""
    t.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call(t)
    finally:
        t.set_warn_always(False)
    cut = r" \(Triggered internally.*"
    return {(w.category.__name__, re.sub(cut, "", str(w.message))) for w in caught}


# Asked before any test runs: whoever sets these checks once, as torch.load does, is not warned again.
UNSET = {name: [given(lib, CALLS[name]) for lib in (mindtorch, torch)] for name in ("coo", "csr")}


@pytest.mark.parametrize("name", CALLS)
def test_warnings_are_torchs(name):
    ours, theirs = UNSET.get(name) or [given(lib, CALLS[name]) for lib in (mindtorch, torch)]
    assert ours == theirs


def test_checks_of_sparse_tensors_that_a_program_turned_off_are_silent():
    with mindtorch.sparse.check_sparse_tensor_invariants(False):
        assert given(mindtorch, CALLS["coo"]) == set()
