"""nn.utils and nn.init behave as torch's: clipping, packing, parametrizations, functional calls."""

from typing import Any

import numpy as np
import pytest
from nn_differential import across, array, assert_same, rand, torch

import mindtorch
import mindtorch.nn.utils


def with_grads(t: Any) -> list[Any]:
    values = [rand(3, 4, grad=False), rand(5, grad=False, seed=2) * 3]
    made = []
    for value in values:
        p = t.nn.Parameter(t.ones(*value.shape))
        p.grad = value.clone() if t is torch else across(value)
        made.append(p)
    return [*made, t.nn.Parameter(t.ones(1))]


@pytest.mark.parametrize("norm", [1.0, 2.0, float("inf"), 3.0])
def test_clipping_by_norm_is_torchs(norm: float) -> None:
    theirs, mine = with_grads(torch), with_grads(mindtorch)
    expected = torch.nn.utils.clip_grad_norm_(theirs, 0.7, norm)
    assert_same(mindtorch.nn.utils.clip_grad_norm_(mine, 0.7, norm), expected, "total norm")
    for a, b in zip(mine, theirs, strict=True):
        assert_same(a.grad, b.grad, "clipped gradient")


def test_clipping_by_value_is_torchs() -> None:
    theirs, mine = with_grads(torch), with_grads(mindtorch)
    torch.nn.utils.clip_grad_value_(theirs, 0.5)
    mindtorch.nn.utils.clip_grad_value_(mine, 0.5)
    for a, b in zip(mine, theirs, strict=True):
        assert_same(a.grad, b.grad, "clipped gradient")


def test_a_norm_that_is_not_finite_is_refused_when_asked() -> None:
    p = mindtorch.nn.Parameter(mindtorch.ones(1))
    p.grad = mindtorch.tensor([float("nan")])
    with pytest.raises(RuntimeError, match="non-finite"):
        mindtorch.nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)


def test_parameters_travel_through_a_vector() -> None:
    model = mindtorch.nn.Linear(3, 2)
    vector = mindtorch.nn.utils.parameters_to_vector(model.parameters())
    mindtorch.nn.utils.vector_to_parameters(vector * 2, model.parameters())
    again = mindtorch.nn.utils.parameters_to_vector(model.parameters())
    np.testing.assert_allclose(array(again), array(vector) * 2)


def sequences(t: Any) -> list[Any]:
    values = [rand(n, 3, grad=False, seed=n) for n in (2, 4, 3)]
    return values if t is torch else [across(v) for v in values]


def packing(t: Any) -> Any:
    rnn = t.nn.utils.rnn
    padded = rnn.pad_sequence(sequences(t), batch_first=True, padding_value=-1.0)
    packed = rnn.pack_padded_sequence(padded, [2, 4, 3], batch_first=True, enforce_sorted=False)
    back, lengths = rnn.pad_packed_sequence(packed, total_length=6)
    return [padded, packed.data, packed.batch_sizes, packed.sorted_indices, back, lengths]


def test_packing_of_sequences_is_torchs() -> None:
    assert_same(packing(mindtorch), packing(torch), "packed")


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers_take_packed_sequences(kind: str) -> None:
    def run(t: Any, state: Any) -> Any:
        layer = getattr(t.nn, kind)(3, 4, num_layers=2, bidirectional=True)
        layer.load_state_dict(state)
        packed = t.nn.utils.rnn.pack_sequence(sequences(t), enforce_sorted=False)
        out, hidden = layer(packed)
        padded, lengths = t.nn.utils.rnn.pad_packed_sequence(out)
        return [padded, lengths, *(hidden if isinstance(hidden, tuple) else (hidden,))]

    state = getattr(torch.nn, kind)(3, 4, num_layers=2, bidirectional=True).state_dict()
    assert_same(run(mindtorch, across(dict(state))), run(torch, state), kind)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.parametrize("where", ["utils", "parametrizations"])
def test_weight_norm_is_torchs(where: str, dim: int | None) -> None:
    def run(t: Any, state: Any) -> Any:
        home = t.nn.utils if where == "utils" else t.nn.utils.parametrizations
        layer = home.weight_norm(t.nn.Linear(3, 4), dim=dim)
        names = list(layer.state_dict())
        layer.load_state_dict(state or layer.state_dict())
        x = rand(2, 3, grad=False)
        out = layer(x if t is torch else across(x))
        out.sum().backward()
        return names, out, [p.grad for p in layer.parameters()], dict(layer.state_dict())

    names, out, grads, state = run(torch, None)
    found = run(mindtorch, across(state))
    assert found[0] == names
    assert_same(found[1], out, "output")
    assert_same(found[2], grads, "gradients")


def test_a_parametrization_computes_and_takes_values() -> None:
    class Doubled(mindtorch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2

        def right_inverse(self, x: Any) -> Any:
            return x / 2

    parametrize = mindtorch.nn.utils.parametrize
    layer = mindtorch.nn.Linear(2, 2)
    before = layer.weight.tolist()
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert parametrize.is_parametrized(layer, "weight")
    assert layer.weight.tolist() == before
    layer.weight = mindtorch.ones(2, 2)
    assert layer.parametrizations.weight.original.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert "parametrizations.weight.original" in layer.state_dict()
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is mindtorch.nn.Linear
    assert layer.weight.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_functional_call_gives_back_the_buffers_that_the_module_set() -> None:
    def run(lib: Any) -> Any:
        class Counter(lib.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("count", lib.zeros(1))
                self.scale = lib.nn.Parameter(lib.ones(1))

            def forward(self, x):
                self.count = self.count + 1
                return self.scale.detach() * x

        module, one = Counter(), {"count": lib.tensor([5.0]), "scale": lib.tensor([2.0])}
        two = ({"count": lib.tensor([5.0])}, {"scale": lib.tensor([3.0])})
        yield lib.func.functional_call(module, one, lib.ones(1)).tolist()
        yield lib.func.functional_call(module, two, lib.ones(1)).tolist()
        yield one["count"].tolist(), two[0]["count"].tolist(), module.count.tolist()
        borrowed = {"scale": lib.tensor([7.0])}
        with lib.nn.utils.stateless._reparametrize_module(module, borrowed):
            yield module.scale.tolist()
        yield module.scale.tolist()

    assert list(run(mindtorch)) == list(run(torch))


def test_functional_call_borrows_tensors_and_gives_them_back() -> None:
    layer = mindtorch.nn.Linear(2, 1)
    own = layer.weight
    given = {"weight": mindtorch.ones(1, 2), "bias": mindtorch.zeros(1)}
    call = mindtorch.func.functional_call
    assert call(layer, given, mindtorch.tensor([2.0, 3.0])).tolist() == [5.0]
    assert layer.weight is own
    with pytest.raises(RuntimeError, match="Missing key"):
        call(layer, {"weight": given["weight"]}, mindtorch.ones(2), strict=True)


FILLS: list[Any] = [
    lambda t, x: t.nn.init.uniform_(x, -2, 3),
    lambda t, x: t.nn.init.normal_(x, 1.0, 0.5),
    lambda t, x: t.nn.init.trunc_normal_(x, std=0.7),
    lambda t, x: t.nn.init.xavier_uniform_(x, gain=2.0),
    lambda t, x: t.nn.init.xavier_normal_(x),
    lambda t, x: t.nn.init.kaiming_uniform_(x, a=0.3),
    lambda t, x: t.nn.init.kaiming_normal_(x, mode="fan_out", nonlinearity="relu"),
    lambda t, x: t.nn.init.orthogonal_(x),
    lambda t, x: t.nn.init.eye_(x),
    lambda t, x: t.nn.init.constant_(x, 0.3),
]


@pytest.mark.parametrize("i", range(len(FILLS)))
def test_initialization_draws_torchs_numbers(i: int) -> None:
    results = []
    for t in (torch, mindtorch):
        t.manual_seed(4)
        results.append(FILLS[i](t, t.empty(6, 5)))
    np.testing.assert_allclose(array(results[1]), array(results[0]), rtol=1e-4, atol=1e-5)


def test_layers_are_born_with_torchs_weights() -> None:
    results = []
    for t in (torch, mindtorch):
        t.manual_seed(9)
        model = t.nn.Sequential(t.nn.Linear(5, 7), t.nn.Conv2d(2, 3, 3), t.nn.Embedding(4, 3))
        results.append([array(p) for p in model.parameters()])
    for a, b in zip(results[1], results[0], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["linear", "tanh", "relu", "leaky_relu", "selu"])
def test_gain_is_torchs(name: str) -> None:
    assert mindtorch.nn.init.calculate_gain(name) == torch.nn.init.calculate_gain(name)


def test_norms_of_weights_are_known_by_torchs_names() -> None:
    seen = []
    for t in (torch, mindtorch):
        with pytest.warns(FutureWarning, match="weight_norm` is deprecated"):
            normed = t.nn.utils.weight_norm(t.nn.Linear(3, 2))
        spectral = t.nn.utils.spectral_norm(t.nn.Linear(3, 2))
        node = normed.weight.grad_fn
        seen.append((
            node.name(), [f.name() for f, _ in node.next_functions],
            spectral.state_dict()._metadata[""], list(spectral.state_dict()),
        ))  # fmt: skip
    assert seen[0] == seen[1]
