"""Kernels of attention: results equal a reference, and what they refuse."""

import math
from typing import Any

import pytest
from kernel_harness import Out, accepted
from torch_samples import noise, randn

torch = pytest.importorskip("torch", reason="torch is the oracle of the simulator's kernels")

FLOATS = [torch.float32, torch.float16, torch.bfloat16]
LOOSE = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}
FAR = 2**31 - 1


def arranged(x: Any, layout: str) -> Any:
    """[B, N, S, D] in another layout."""
    if layout == "BNSD":
        return x
    if layout == "BSND":
        return x.transpose(1, 2).contiguous()
    if layout == "BSH":
        return x.transpose(1, 2).flatten(2).contiguous()
    return x.permute(2, 0, 1, 3).flatten(2).contiguous()


def attend(
    q: Any,
    k: Any,
    v: Any,
    scale: float,
    hidden: Any = None,
    shift: Any = None,
    kept: Any = None,
    keep: float = 1.0,
) -> tuple[Any, Any, Any]:
    """Output and the softmax's maxima and sums, straight from the definition."""
    k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], 1) for t in (k, v))
    scores = q @ k.transpose(-1, -2)
    scores = (scores if shift is None else scores + shift) * scale
    if hidden is not None:
        scores = scores.masked_fill(hidden, -math.inf)
    top = scores.max(-1, keepdim=True).values
    raised = (scores - top).exp()
    total = raised.sum(-1, keepdim=True)
    weights = raised / total
    if kept is not None:
        weights = weights * kept / keep
    return weights @ v, top.detach(), total.detach()


def check_attention(
    sim: Any,
    layout: str,
    q: Any,
    k: Any,
    v: Any,
    *,
    hidden: Any = None,
    mask: Any = None,
    shift: Any = None,
    mode: int = 0,
    tokens: tuple[int, int] = (FAR, FAR),
    bits: Any = None,
    kept: Any = None,
    keep: float = 1.0,
) -> None:
    """Compare value, statistics and gradients with the definition in double precision."""
    dtype, scale, heads = q.dtype, 1 / math.sqrt(q.shape[-1]), q.shape[1]
    wide = [t.double().requires_grad_() for t in (q, k, v)]
    extra = None if shift is None else shift.double().requires_grad_()
    out, top, total = attend(*wide, scale, hidden, extra, kept, keep)
    g = randn(dtype, *out.shape, seed=9)
    found = torch.autograd.grad(out, wide + ([] if extra is None else [extra]), g.double())
    inputs = [arranged(t, layout) for t in (q, k, v)]
    stats = [t.float().expand(*t.shape[:-1], 8).contiguous() for t in (top, total)]
    y, tol = arranged(out.detach().to(dtype), layout), LOOSE[dtype]
    spare = torch.zeros(1, dtype=dtype)
    settings = (scale, keep, *tokens, heads, layout, 0, mode)
    sim.check(
        "aclnnFlashAttentionScore",
        *inputs,
        shift,
        bits,
        None,
        mask,
        None,
        *settings,
        *[Out(s, tolerance=max(tol, 1e-5)) for s in stats],
        Out(spare, spare),
        Out(y, tolerance=tol),
        layouts=("contiguous", "offset"),
    )
    grads = [Out(arranged(t.to(dtype), layout), tolerance=4 * tol) for t in found[:3]]
    last = Out(spare, spare) if extra is None else Out(found[3].to(dtype), tolerance=4 * tol)
    sim.check(
        "aclnnFlashAttentionScoreGrad",
        *inputs,
        arranged(g, layout),
        shift,
        bits,
        None,
        mask,
        *stats,
        None,
        y,
        None,
        *settings,
        *grads,
        last,
        layouts=("contiguous", "offset"),
    )


def inputs(
    dtype: Any, kv_heads: int = 4, queries: int = 70, keys: int = 40
) -> tuple[Any, Any, Any]:
    return (
        randn(dtype, 2, 4, queries, 16),
        randn(dtype, 2, kv_heads, keys, 16, seed=1),
        randn(dtype, 2, kv_heads, keys, 16, seed=2),
    )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("layout", ["BNSD", "BSND", "BSH", "SBH"])
@pytest.mark.parametrize("kv_heads", [4, 2])
def test_attention_and_its_gradients_equal_the_definition(
    sim: Any, dtype: Any, layout: str, kv_heads: int
) -> None:
    check_attention(sim, layout, *inputs(dtype, kv_heads))


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_mask_hides_and_a_shift_moves_scores(sim: Any, dtype: Any) -> None:
    q, k, v = inputs(dtype)
    hidden = torch.rand(2, 1, 70, 40) > 0.5
    hidden[..., 0] = False
    check_attention(
        sim, "BNSD", q, k, v, hidden=hidden, mask=hidden, shift=randn(dtype, 2, 4, 70, 40)
    )
    flat = hidden[0, 0]
    check_attention(sim, "BSH", q, k, v, hidden=flat, mask=flat.to(torch.uint8))


@pytest.mark.parametrize("mode", [2, 3, 4])
def test_sparse_modes_hide_what_their_band_leaves_out(sim: Any, mode: int) -> None:
    q, k, v = inputs(torch.float32, queries=30, keys=40)
    row, column = torch.arange(30)[:, None], torch.arange(40)[None]
    corner = row + 10
    hidden = {
        2: column > row,
        3: column > corner,
        4: (column < corner - 5) | (column > corner + 2),
    }[mode]
    triangle = torch.ones(2048, 2048, dtype=torch.bool).triu(1)
    check_attention(sim, "BNSD", q, k, v, hidden=hidden, mask=triangle, mode=mode, tokens=(5, 2))


def test_dropped_scores_take_no_part_in_values_and_gradients(sim: Any) -> None:
    q, k, v = inputs(torch.float32)
    kept = torch.rand(2, 4, 70, 40) < 0.75
    weights = 2 ** torch.arange(8)
    bits = (kept.flatten().reshape(-1, 8) * weights).sum(-1).to(torch.uint8)
    check_attention(sim, "BSND", q, k, v, bits=bits, kept=kept, keep=0.75)


def test_a_query_that_may_attend_to_nothing_gives_zero(sim: Any) -> None:
    q, k, v = inputs(torch.float32, queries=3, keys=5)
    hidden = torch.zeros(3, 5, dtype=torch.bool)
    hidden[1] = True
    zero, stat = torch.zeros(2, 4, 3, 16), torch.zeros(2, 4, 3, 8)
    (_, _), (_, _), (_, _), (out, _) = sim.run(
        "aclnnFlashAttentionScore",
        q,
        k,
        v,
        None,
        None,
        None,
        hidden,
        None,
        0.25,
        1.0,
        FAR,
        FAR,
        4,
        "BNSD",
        0,
        0,
        Out(stat),
        Out(stat),
        Out(torch.zeros(1)),
        Out(zero),
    )
    assert torch.equal(out[:, :, 1], zero[:, :, 1])
    assert out[:, :, 0].abs().min() > 0


def test_unknown_layouts_and_modes_are_refused(sim: Any) -> None:
    from aclnn_bindings.runtime.status import AclError

    q, stat = torch.zeros(1, 2, 3, 4), torch.zeros(1, 2, 3, 8)
    for layout, mode, words in (("TND", 0, "layout"), ("BNSD", 5, "sparseMode")):
        with pytest.raises(AclError, match=words) as caught:
            sim.run(
                "aclnnFlashAttentionScore",
                q,
                q,
                q,
                None,
                None,
                None,
                None,
                None,
                1.0,
                1.0,
                FAR,
                FAR,
                2,
                layout,
                0,
                mode,
                Out(stat),
                Out(stat),
                Out(torch.zeros(1)),
                Out(q),
            )
        assert caught.value.code == 161002


def test_the_second_version_can_shift_after_scaling(sim: Any) -> None:
    q, k, v = inputs(torch.float32)
    shift = randn(torch.float32, 2, 4, 70, 40, seed=3)
    out, top, total = attend(q, k, v, 0.25, shift=shift / 0.25)
    stats = [Out(t.expand(2, 4, 70, 8).contiguous(), tolerance=1e-5) for t in (top, total)]
    absent, spare = [None] * 6, torch.zeros(1)
    settings = (0.25, 1.0, FAR, FAR, 4, "BNSD", 0, 0, 0)
    ends = (*stats, Out(spare, spare), Out(out, tolerance=1e-5))
    sim.check("aclnnFlashAttentionScoreV2", q, k, v, shift, *absent, *settings, *ends)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("layout", ["BNSD", "BSH"])
def test_attention_to_a_prompt_equals_the_definition(sim: Any, dtype: Any, layout: str) -> None:
    q, k, v = inputs(dtype, 2, 40, 40)
    hidden = torch.ones(40, 40, dtype=torch.bool).triu(1)
    out = attend(*[t.double() for t in (q, k, v)], 0.25, hidden)[0].to(dtype)
    given = [arranged(t, layout) for t in (q, k, v)]
    expected = Out(arranged(out, layout), tolerance=LOOSE[dtype])
    triangle = torch.ones(2048, 2048, dtype=torch.bool).triu(1)
    settings = (4, 0.25, FAR, FAR, layout, 2)
    sim.check("aclnnPromptFlashAttention", *given, None, hidden, None, *settings, expected)
    for mode, mask in ((0, hidden), (2, triangle)):
        absent = [None] * 7
        sim.check(
            "aclnnPromptFlashAttentionV3", *given, None, mask, *absent, *settings, mode, 1, expected
        )


F = torch.nn.functional


def test_attention_over_levels_samples_as_grid_sample_does(sim: Any) -> None:
    shapes, heads, width = [(3, 4), (2, 2)], 2, 3
    value = noise(2, 16, heads, width).requires_grad_()
    at = torch.rand(2, 5, heads, 2, 4, 2, generator=torch.Generator().manual_seed(1)) * 1.4 - 0.2
    at.requires_grad_()
    share = noise(2, 5, heads, 2, 4, seed=2).softmax(-1).requires_grad_()
    total, first = 0, 0
    for level, (h, w) in enumerate(shapes):
        plane = value[:, first : first + h * w].permute(0, 2, 3, 1).reshape(2 * heads, width, h, w)
        grid = at[:, :, :, level].transpose(1, 2).flatten(0, 1) * 2 - 1
        sampled = F.grid_sample(plane, grid, align_corners=False)  # [B H, D, Q, P]
        by = share[:, :, :, level].transpose(1, 2).flatten(0, 1)[:, None]
        total = total + (sampled * by).sum(-1).view(2, heads * width, 5)
        first += h * w
    y = total.transpose(1, 2).contiguous()
    given = (
        value.detach(),
        torch.tensor(shapes),
        torch.tensor([0, 12]),
        at.detach(),
        share.detach(),
    )
    accepted(sim, "aclnnMultiScaleDeformableAttnFunction", *given, Out(y.detach(), tolerance=1e-5))
    g = noise(*y.shape, seed=3)
    grads = torch.autograd.grad((y * g).sum(), (value, at, share))
    accepted(sim, "aclnnMultiScaleDeformableAttentionGrad", *given, g,
             *(Out(t, tolerance=1e-4) for t in grads))  # fmt: skip


def test_window_attention_adds_mask_and_bias_before_its_softmax(sim: Any) -> None:
    x, mask, bias = noise(2, 3, 2, 4, 4), noise(3, 4, 4, seed=1), noise(2, 4, 4, seed=2)
    y = (x * 0.5 + mask[None, :, None] + bias).softmax(-1)
    accepted(sim, "aclnnMaskedSoftmaxWithRelPosBias", x, mask, bias, 0.5, 0, Out(y, tolerance=1e-5))
    accepted(sim, "aclnnMaskedSoftmaxWithRelPosBias", x.flatten(0, 1), None, bias, 0.5, 0,
             Out((x * 0.5 + bias).softmax(-1).flatten(0, 1), tolerance=1e-5))  # fmt: skip


def test_projections_are_split_into_heads(sim: Any) -> None:
    qkv, bias = noise(2, 3, 24), noise(24, seed=1)
    outs = torch.ops.aten._transform_bias_rescale_qkv(qkv, bias, 2)
    accepted(sim, "aclnnTransformBiasRescaleQkv", qkv, bias, 2, *(Out(o) for o in outs))
