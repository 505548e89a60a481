"""Attention and dropout on npu are operators of CANN, with values and derivatives of the cpu."""

import numpy as np
import pytest

import mindtorch
from mindtorch import nn
from mindtorch._backends.npu import runtime

CALLS = {
    "plain": ((4, 7, 8), (), {}),
    "causal": ((4, 7, 8), (), {"is_causal": True, "scale": 0.3}),
    "shared heads": ((2, 7, 8), (), {"enable_gqa": True}),
    "one head": ((1, 7, 8), (), {}),
    "mask of rows": ((4, 7, 8), (5, 7), {}),
    "mask of keys": ((4, 7, 8), (1, 1, 1, 7), {}),
    "mask of heads": ((4, 7, 8), (4, 5, 7), {}),
}


def forget(monkeypatch, word):
    """Let the install lack operators with the word in their names."""
    cann, export = type(runtime.cann()), type(runtime.cann()).has_op
    monkeypatch.setattr(cann, "has_op", lambda self, op: word not in op and export(self, op))


def everything(device, batch, call, dtype):
    """The result, gradients, recorded gradients and gradients of gradients."""
    mindtorch.manual_seed(0)
    key, mask, options = CALLS[call]
    tensors = [mindtorch.randn(batch, *s).to(device, dtype) for s in ((4, 5, 8), key, key)]
    q, k, v = (t.requires_grad_() for t in tensors)
    if mask:
        seen = mindtorch.rand(mask) > 0.4
        seen[..., :1, :] &= mindtorch.arange(7) > 4 + mask[-2]  # a row that sees nothing
        options = {"attn_mask": seen.to(device)}
    out = nn.functional.scaled_dot_product_attention(q, k, v, **options)
    loss = (out.float() ** 2).sum()
    first = mindtorch.autograd.grad(loss, (q, k, v), retain_graph=True)
    recorded = mindtorch.autograd.grad(loss, (q, k, v), create_graph=True)
    second = mindtorch.autograd.grad(sum((g.float() ** 2).sum() for g in recorded), (q, k, v))
    return [t.detach().cpu().double().numpy() for t in (out, *first, *recorded, *second)]


@pytest.mark.parametrize("lacking", [False, True])
@pytest.mark.parametrize("call", CALLS)
def test_attention_has_the_values_and_derivatives_of_the_cpu(call, lacking, monkeypatch):
    if lacking:
        forget(monkeypatch, "FlashAttention")
    batch = 2 + lacking  # plans are kept for a shape
    on_cpu = everything("cpu", batch, call, mindtorch.float64)
    most = max(np.abs(t).max() for t in on_cpu)
    for dtype, tolerance in ((mindtorch.float32, 1e-5), (mindtorch.bfloat16, 0.05)):
        for ours, theirs in zip(everything("npu", batch, call, dtype), on_cpu, strict=True):
            np.testing.assert_allclose(ours, theirs, tolerance, tolerance * most)


def test_what_attention_drops_has_no_gradient_in_either_form():
    mindtorch.manual_seed(0)
    q, k = (mindtorch.randn(1, 1, n, 8, device="npu") for n in (40, 70))
    v = mindtorch.eye(70, device="npu")[None, None].requires_grad_()
    weights = nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=0.25)
    whole = nn.functional.scaled_dot_product_attention(q, k, v.detach())
    kept = weights != 0
    assert 0.7 < kept.float().mean().item() < 0.8
    mindtorch.testing.assert_close(weights.detach(), kept * whole / 0.75)
    (grad,) = mindtorch.autograd.grad(weights.sum(), v)
    mindtorch.testing.assert_close(grad[0, 0, :, 0], weights.detach().sum((0, 1, 2)))


@pytest.mark.parametrize("lacking", [False, True])
@pytest.mark.parametrize("inplace", [False, True])
def test_dropout_keeps_the_same_elements_in_the_gradient(inplace, lacking, monkeypatch):
    mindtorch.manual_seed(0)
    if lacking:
        forget(monkeypatch, "DropoutDoMask")
    shape = (90 + lacking, 7)
    x = mindtorch.ones(shape, device="npu", dtype=mindtorch.float16, requires_grad=True)
    y = nn.functional.dropout(x.t() * 1, 0.25, inplace=inplace)
    kept = y != 0
    assert 0.7 < kept.float().mean().item() < 0.8
    assert y.stride() == (1, 7)
    mindtorch.testing.assert_close(y.detach(), kept / 0.75, check_dtype=False)
    y.sum().backward()
    mindtorch.testing.assert_close(x.grad, y.detach().t())


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("mask", [None, "rows", "heads", "causal"])
def test_masks_of_heads_reach_the_operator_as_they_are(mask, padded):
    def outcomes(device):
        mindtorch.manual_seed(0)
        layer = nn.MultiheadAttention(8, 2, batch_first=True).to(device)
        x = mindtorch.randn(2, 3, 8).to(device).requires_grad_()
        masks = {"rows": [[0, 0, 1]] * 3, "heads": [[[0, 1, 0]] * 3, [[0, 0, 1]] * 3] * 2}
        masks |= {"causal": [[0, 1, 1], [0, 0, 1], [0, 0, 0]]}
        hides = mindtorch.tensor(masks[mask]).bool().to(device) if mask else None
        padding = mindtorch.tensor([[False, False, padded]] * 2).to(device)
        options = {"key_padding_mask": padding} if padded else {}
        out = layer(x, x, x, attn_mask=hides, is_causal=mask == "causal", need_weights=False,
                    **options)[0]  # fmt: skip
        return [out, *mindtorch.autograd.grad((out**2).sum(), (x, layer.in_proj_weight))]

    for ours, theirs in zip(outcomes("npu"), outcomes("cpu"), strict=True):
        mindtorch.testing.assert_close(ours.cpu(), theirs)
