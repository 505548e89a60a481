"""Tables looked up with `sparse=True`: their gradients, and the optimizers that take them."""

import numpy as np
import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")
TAKEN = [
    ("SparseAdam", {}),
    ("SparseAdam", {"maximize": True, "lr": 0.1, "betas": (0.5, 0.8)}),
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1}),
]
REFUSED = [(name, {}) for name in ("Adam", "AdamW", "RMSprop", "Adadelta", "Adamax", "NAdam")]
REFUSED += [("Adagrad", {"weight_decay": 0.1}), ("SGD", {"weight_decay": 0.1})]


def table(t, device, **options):
    drawn = np.random.default_rng(0).normal(size=(7, 3)).astype("float32")
    weight = t.tensor(drawn, device=device)
    return t.nn.Embedding(7, 3, padding_idx=2, sparse=True, _weight=weight, **options)


def shown(t, tensor):
    sparse = tensor.layout is t.sparse_coo
    host = (tensor.to_dense() if sparse else tensor).detach().cpu().numpy()
    return str(tensor.layout), host.copy()


def train(t, device, name, options):
    rows = table(t, device)
    optimizer = getattr(t.optim, name)(rows.parameters(), **options)
    kept = []
    for k in range(4):
        optimizer.zero_grad(set_to_none=k % 2 == 0)
        index = t.tensor([[1, 2, 4], [4, 0, k]], device=device)
        (rows(index).square().sum() + rows(index[0]).sum()).backward()
        kept.append(shown(t, rows.weight.grad))
        optimizer.step()
        kept.append(shown(t, rows.weight))
    return kept


def assert_same(got, expected):
    for (layout, values), (wanted, numbers) in zip(got, expected, strict=True):
        assert layout == wanted
        np.testing.assert_allclose(values, numbers, 1e-5, 1e-6)


@pytest.mark.parametrize("device", ["cpu", "npu"])
@pytest.mark.parametrize(("name", "options"), TAKEN)
def test_sparse_gradients_train_as_on_torch(name, options, device):
    assert_same(train(mindtorch, device, name, options), train(torch, "cpu", name, options))


@pytest.mark.parametrize(("name", "options"), REFUSED)
def test_optimizers_refuse_sparse_gradients_in_torchs_words(name, options):
    with pytest.raises(RuntimeError) as expected:
        train(torch, "cpu", name, options)
    with pytest.raises(RuntimeError) as got:
        train(mindtorch, "cpu", name, options)
    assert str(got.value) == str(expected.value)


def sums(t, device, parts):
    rows = table(t, device)
    index = t.tensor([[1, 2, 4], [4, 0, 1]], device=device)
    bag = t.nn.functional.embedding_bag
    losses = {
        "sparse": lambda: rows(index).sum(),
        "dense": lambda: (rows.weight * 2).sum(),
        "bag": lambda: bag(index, rows.weight, sparse=True, mode="sum").square().sum(),
        "both": lambda: rows(index).sum() + rows.weight.square().sum(),
    }
    kept = []
    for part in parts:
        losses[part]().backward()
        kept.append(shown(t, rows.weight.grad))
    return kept


@pytest.mark.parametrize("device", ["cpu", "npu"])
@pytest.mark.parametrize("parts", [("sparse", "dense"), ("dense", "sparse"), ("both", "bag"),
                                   ("bag", "sparse", "both")])  # fmt: skip
def test_sparse_and_dense_gradients_add_up(parts, device):
    assert_same(sums(mindtorch, device, parts), sums(torch, "cpu", parts))


def test_only_the_rows_looked_up_are_kept():
    rows = mindtorch.nn.Embedding(1 << 40, 1, sparse=True, device="meta")
    rows(mindtorch.zeros(3, dtype=mindtorch.int64, device="meta")).sum().backward()
    assert rows.weight.grad._nnz() == 3


def test_rows_scaled_by_frequency_are_refused():
    rows = table(mindtorch, "cpu", scale_grad_by_freq=True)
    with pytest.raises(RuntimeError, match="scale_grad_by_freq not supported with sparse"):
        rows(mindtorch.tensor([1, 1])).sum().backward()
