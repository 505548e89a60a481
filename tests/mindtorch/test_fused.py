"""What torch_npu adds gives what torch's own functions give, on cpu and on npu."""

import pytest

import mindtorch as torch
from aclnn_bindings.install.library import bundled_simulator
from mindtorch import torch_npu
from mindtorch.nn import functional

DEVICES = [
    "cpu",
    pytest.param(
        "npu", marks=pytest.mark.skipif(bundled_simulator() is None, reason="no simulator")
    ),
]


@pytest.fixture(params=DEVICES)
def drawn(request):
    torch.manual_seed(0)
    return lambda *shape: torch.randn(*shape, device="cpu").to(request.param)


def close(a, b):
    torch.testing.assert_close(a.cpu(), b.cpu(), rtol=1e-5, atol=1e-5)


LAYOUTS = {
    "BNSD": lambda t: t,
    "BSND": lambda t: t.transpose(1, 2),
    "BSH": lambda t: t.transpose(1, 2).flatten(2),
    "SBH": lambda t: t.permute(2, 0, 1, 3).flatten(2),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_attention_is_that_of_torch_in_every_layout(drawn, layout, mode):
    query = drawn(2, 4, 3, 8)
    key, value = drawn(2, 2, 5, 8), drawn(2, 2, 5, 8)
    full = torch.ones(3, 5, dtype=torch.bool, device=query.device)
    seen = {2: full.tril(), 3: full.tril(2)}.get(mode, full.tril(1))
    wanted = functional.scaled_dot_product_attention(
        query, key, value, seen, scale=0.3, enable_gqa=True
    )
    lay = LAYOUTS[layout]
    out, most, total, *_ = torch_npu.npu_fusion_attention(
        lay(query), lay(key), lay(value), 4, layout, atten_mask=~seen, scale=0.3, sparse_mode=mode
    )
    close(out, lay(wanted))
    assert most.shape == total.shape == (2, 4, 3, 8)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("mode", "ahead"), [(2, 0), (3, 2)])
def test_a_compressed_mask_hides_what_comes_later(mode, ahead, layout, drawn):
    query, lay = drawn(2, 4, 3, 8).requires_grad_(), LAYOUTS[layout]
    key, value = drawn(2, 2, 5, 8), drawn(2, 2, 5, 8)
    later = torch.ones(2048, 2048, dtype=torch.bool, device=query.device).triu(1)
    seen = torch.ones(3, 5, dtype=torch.bool, device=query.device).tril(ahead)
    wanted = functional.scaled_dot_product_attention(query, key, value, seen, enable_gqa=True)
    out = torch_npu.npu_fusion_attention(
        lay(query), lay(key), lay(value), 4, layout, atten_mask=later, scale=8**-0.5,
        sparse_mode=mode,
    )[0]  # fmt: skip
    close(out, lay(wanted))
    close(*(torch.autograd.grad((r**2).sum(), query)[0] for r in (out, wanted)))


def test_a_band_hides_what_is_far(drawn):
    query, key, value = (drawn(1, 1, 4, 8) for _ in range(3))
    full = torch.ones(4, 4, dtype=torch.bool, device=query.device)
    seen = full.tril(0) & full.triu(-1)
    wanted = functional.scaled_dot_product_attention(query, key, value, seen, scale=1.0)
    out = torch_npu.npu_fusion_attention(
        query, key, value, 1, "BNSD", atten_mask=~full, pre_tockens=1, next_tockens=0, sparse_mode=4
    )[0]
    close(out, wanted)


def test_packed_sequences_see_themselves_alone(drawn):
    query, key, value = (drawn(7, 2, 8) for _ in range(3))
    out = torch_npu.npu_fusion_attention(
        query, key, value, 2, "TND", scale=0.5, actual_seq_qlen=(3, 7), actual_seq_kvlen=(3, 7)
    )[0]
    for part in (slice(0, 3), slice(3, 7)):
        sides = (t[part].transpose(0, 1) for t in (query, key, value))
        wanted = functional.scaled_dot_product_attention(*sides, scale=0.5)
        close(out[part], wanted.transpose(0, 1))


def test_norms_gates_and_rotations_are_those_of_torch(drawn):
    x, gamma = drawn(2, 3, 8), drawn(8)
    close(torch_npu.npu_rms_norm(x, gamma)[0], functional.rms_norm(x, (8,), gamma, 1e-6))
    left, right = x.chunk(2, -1)
    close(torch_npu.npu_swiglu(x), functional.silu(left) * right)
    close(torch_npu.npu_geglu(x)[0], left * functional.gelu(right, approximate="tanh"))
    turned = torch.cat((-right, left), -1)
    close(torch_npu.npu_rotary_mul(x, gamma, gamma), x * gamma + turned * gamma)


def test_gradients_go_through_attention(drawn):
    query, key, value = (drawn(1, 2, 3, 4).requires_grad_() for _ in range(3))
    torch_npu.npu_fusion_attention(query, key, value, 2, "BNSD", scale=0.5)[0].sum().backward()
    ours = [t.grad.clone() for t in (query, key, value)]
    for t in (query, key, value):
        t.grad = None
    functional.scaled_dot_product_attention(query, key, value, scale=0.5).sum().backward()
    for a, t in zip(ours, (query, key, value), strict=True):
        close(a, t.grad)


def test_what_is_not_here_is_refused_by_name(drawn):
    x = drawn(1, 1, 2, 4)
    with pytest.raises(NotImplementedError, match="sparse_mode=5"):
        torch_npu.npu_fusion_attention(x, x, x, 1, "BNSD", sparse_mode=5)
    with pytest.raises(ValueError, match="actual_seq_qlen"):
        torch_npu.npu_fusion_attention(x[0], x[0], x[0], 1, "TND")
    with pytest.raises(AttributeError, match="npu_no_such_name"):
        torch_npu.npu_no_such_name  # noqa: B018
