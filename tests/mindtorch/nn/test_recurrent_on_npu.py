"""Layers of an LSTM and a GRU are one launch on npu, with the derivatives that they have on cpu."""

from typing import Any

import numpy as np
import pytest

import mindtorch
from mindtorch import func, nn
from mindtorch._backends.npu import runtime

SETTINGS = [{}, {"bidirectional": True, "num_layers": 2}, {"bias": False, "batch_first": True}]


def close(one: list[Any], other: list[Any]) -> None:
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a.detach().cpu().numpy(), b.detach().numpy(), 2e-4, 2e-5)


def everything(layer: Any, x: Any) -> list[Any]:
    """Outputs, gradients and gradients of gradients; a tangent."""
    x = x.clone().requires_grad_()
    out, last = layer(x)
    outputs = [out, *(last if isinstance(last, tuple) else (last,))]
    leaves = [x, *layer.parameters()]
    loss = (out**2).sum() + sum(s.sum() for s in outputs[1:])
    first = mindtorch.autograd.grad(loss, leaves, retain_graph=True)
    recorded = mindtorch.autograd.grad(loss, leaves, create_graph=True)
    second = mindtorch.autograd.grad(sum((g**2).sum() for g in recorded), leaves)
    tangent = func.jvp(lambda v: layer(v)[0], (x.detach(),), (mindtorch.ones_like(x),))[1]
    return [*outputs, *first, *recorded, *second, tangent]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: " ".join(s) or "plain")
@pytest.mark.parametrize("name", ["LSTM", "GRU"])
def test_a_layer_has_the_values_and_derivatives_of_the_cpu(
    name: str, settings: dict[str, Any]
) -> None:
    mindtorch.manual_seed(0)
    layer, x = getattr(nn, name)(3, 4, **settings), mindtorch.randn(5, 2, 3)
    on_cpu = everything(layer, x)
    close(everything(layer.npu(), x.npu()), on_cpu)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_a_cell_has_the_values_and_derivatives_of_the_cpu(dtype: str) -> None:
    mindtorch.manual_seed(0)
    kind = getattr(mindtorch, dtype)
    inputs = [mindtorch.randn(3, n) for n in (3, 4, 4)]
    seen = []
    for device in ("cpu", "npu"):
        cell = nn.LSTMCell(3, 4)
        for p in cell.parameters():
            nn.init.constant_(p, 0.2)
        cell = cell.to(device, kind)
        x, h, c = (t.to(device, kind).requires_grad_() for t in inputs)
        outputs = cell(x, (h, c))
        loss = sum(((k + 1) * o.float() ** 2).sum() for k, o in enumerate(outputs))
        first = mindtorch.autograd.grad(loss, [x, h, c, *cell.parameters()], create_graph=True)
        second = mindtorch.autograd.grad(sum((g.float() ** 2).sum() for g in first), [x, h, c])
        seen.append([t.detach().cpu().float() for t in (*outputs, *first, *second)])
    tolerance = {"float16": 2e-2, "bfloat16": 1e-1}.get(dtype, 1e-4)
    for ours, theirs in zip(*seen, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), tolerance, tolerance)


@pytest.mark.parametrize("name", ["LSTM", "GRU"])
def test_a_layer_takes_few_launches_and_is_composed_where_the_operator_is_missing(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer, counters = getattr(nn, name)(3, 4).npu(), runtime.cann().runtime.counters

    def launches(x: Any) -> tuple[int, Any]:
        layer(x)
        before = counters()["launches"]
        out = layer(x)[0]
        return counters()["launches"] - before, out.cpu()

    x = mindtorch.randn(9, 2, 3)
    few, out = launches(x.npu())
    assert few <= 6
    export = type(runtime.cann()).has_op
    monkeypatch.setattr(
        type(runtime.cann()), "has_op", lambda cann, op: op != f"aclnn{name}" and export(cann, op)
    )
    many, composed = launches(mindtorch.cat([x, x]).npu())
    assert many > 40
    np.testing.assert_allclose(composed[:9].detach().numpy(), out.detach().numpy(), 1e-5, 1e-6)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("name", ["LSTM", "GRU"])
def test_packed_sequences_are_one_call_while_none_ends(name: str, bidirectional: bool) -> None:
    def outcome(device: str, lengths: list[int]) -> tuple[list[Any], int]:
        mindtorch.manual_seed(0)
        layer = getattr(nn, name)(3, 4, bidirectional=bidirectional)
        sequences = [mindtorch.randn(n, 3).to(device).requires_grad_() for n in lengths]
        packed = nn.utils.rnn.pack_sequence(sequences)
        layer = layer.to(device)
        before = runtime.cann().runtime.counters()["launches"]
        out, last = layer(packed)
        launched = runtime.cann().runtime.counters()["launches"] - before
        outputs = [out.data, *(last if isinstance(last, tuple) else (last,))]
        loss = sum((t**2).sum() for t in outputs)
        leaves = [*sequences, *layer.parameters()]
        first = mindtorch.autograd.grad(loss, leaves, create_graph=True)
        second = mindtorch.autograd.grad(sum((g**2).sum() for g in first), leaves)
        return [*outputs, *first, *second], launched

    few, many = ([5, 5, 2], [9, 9, 4])
    close(outcome("npu", few)[0], outcome("cpu", few)[0])
    assert outcome("npu", few)[1] == outcome("npu", many)[1] < 40
