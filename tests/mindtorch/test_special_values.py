"""Values that are easily got wrong in silence agree with torch on cpu and npu, or are refused."""

from __future__ import annotations

import pytest

import mindtorch

oracle = pytest.importorskip("torch", reason="torch 2.13 is the oracle")

NAN, INF = float("nan"), float("inf")


def half(t, d):
    return t.tensor([1.0, NAN, 0.0], dtype=t.bfloat16, device=d)


def image(t, d):
    pixels = t.arange(36.0, device=d).reshape(1, 1, 6, 6)
    return pixels.masked_fill(pixels == 0, INF)


CALLS = {
    "sort of NaN in bfloat16": lambda t, d: half(t, d).sort().values.float(),
    "argsort of NaN in bfloat16": lambda t, d: half(t, d).argsort(),
    "topk of NaN in bfloat16": lambda t, d: half(t, d).topk(2).values.float(),
    "kthvalue of NaN in bfloat16": lambda t, d: half(t, d).kthvalue(1).values.float(),
    "one infinity in a pooled image": lambda t, d: t.nn.functional.adaptive_avg_pool2d(
        image(t, d), 3
    ),
    "NaN in bucketize": lambda t, d: t.bucketize(
        t.tensor([NAN, 1.0, 3.0], device=d), t.tensor([1.0, 2.0], device=d)
    ),
    "logsumexp of integers": lambda t, d: t.logsumexp(t.tensor([1, 2], device=d), 0),
    "square of bool": lambda t, d: t.square(t.tensor([True, False], device=d)),
    "hypot promotes": lambda t, d: t.hypot(
        t.tensor(3.0, device=d), t.tensor(4, dtype=t.uint8, device=d)
    ),
    "clamp by a tensor promotes": lambda t, d: t.tensor([1, 2], device=d).clamp(
        t.tensor(0.5, device=d)
    ),
    "negative weights": lambda t, d: t.multinomial(t.tensor([-1.0, 2.0], device=d), 1),
    "infinite weights": lambda t, d: t.multinomial(t.tensor([INF, 2.0], device=d), 1),
    "weights of zero": lambda t, d: t.multinomial(t.tensor([0.0, 0.0], device=d), 1, True),
}


def outcome(torch, device, call):
    try:
        result = call(torch, device)
    except RuntimeError as error:
        return str(error)
    return str(result.dtype), str(result.cpu().tolist())


@pytest.mark.parametrize("device", ["cpu", "npu"])
@pytest.mark.parametrize("name", CALLS)
def test_the_value_or_the_refusal_is_torch_s(name, device):
    ours = outcome(mindtorch, device, CALLS[name])
    assert ours == outcome(oracle, "cpu", CALLS[name])
