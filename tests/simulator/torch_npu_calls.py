"""Runs small torch calls on cpu and npu; prints each that differs or fails, then how many ran.

In a call, `a` and `b` are float32 [4, 6] and `i` is int64 [4, 6] in [0, 4).
"""

from typing import Any

import torch
import torch.nn.functional as F
import torch_npu  # noqa: F401  registers the device

# Convolutions of float32 are in HF32 otherwise, as on hardware.
torch.npu.conv.allow_hf32 = False

CALLS = """
a + b; a - 2; 2 - a; a * b; a / b; a // b; a % b; a ** 2; a.abs() ** b; -a; a.exp(); a.abs().log()
a.abs().sqrt(); a.abs().rsqrt(); a.sin(); a.erf(); a.sign(); a.floor(); a.round(); a.reciprocal()
a.tanh(); a.expm1(); a.atan(); a.clamp(-1, 1); torch.clamp(a, min=b); torch.clamp(a, max=b)
torch.maximum(a, b); torch.where(a > 0, a, b); a == b; a < 0; (a > 0) & (b > 0); ~(a > 0); i & 1
i << 1; a.isnan(); a.nan_to_num(); torch.lerp(a, b, 0.3); torch.addcmul(a, a, b); torch.atan2(a, b)
a.sum(); a.sum(1, keepdim=True); a.mean(0); a.max(1); a.argmax(1); a.amax(0); a.prod(); a.std()
a.var(1); a.norm(); (a > 0).any(); (a > 0).all(1); a.cumsum(1); a.cumprod(1); a.logsumexp(1)
a.sort(1); a.topk(2); i.unique(); (a > 0).nonzero(); a.median(1); a.kthvalue(2); a.quantile(0.5)
torch.cat([a, b], 1); torch.stack([a, b]); a.split(2, 1); a.flip(1); a.roll(1, 0); a.repeat(2, 1)
a.repeat_interleave(2, 1); F.pad(a, (1, 1)); a.tril(); a.triu(); a[:, ::2] + b[:, 1::2]
a.t().contiguous(); a.unfold(1, 2, 1) + 0; a.diff(); torch.rot90(a); a.half() + b.half(); a.int()
a.gather(1, i); a.scatter(1, i, b); a.scatter_add(1, i, b); a.index_select(0, i[:, 0]); a[i[:, 0]]
a[i[:, 0], i[:, 1]]; a[a > 0]; a.masked_fill(a > 0, 0); a.masked_scatter(a > 0, b); a.take(i)
a.index_put((i[:, 0],), b, accumulate=True); a.index_add(0, i[:, 0], b); F.embedding(i, a)
a.index_fill(0, i[0, :2], 1.0); F.one_hot(i); i.flatten().bincount(); torch.histc(a, 4)
torch.isin(i, i[0]); a.clone().zero_(); a.clone().copy_(b); a.clone().add_(b).mul_(2).relu_()
a @ b.t(); a @ b[0]; torch.dot(a[0], b[0]); torch.outer(a[0], b[0]); torch.addmm(a[:, :4], a, b.t())
torch.einsum("ij,kj->ik", a, b); a[None] @ b.t()[None]; F.linear(a, b); a.trace(); torch.cdist(a, b)
torch.linalg.inv(a[:, :4] + 5 * torch.eye(4, device=a.device)); torch.det(a[:, :4])
torch.complex(a, b).abs(); torch.polar(a, b).real; a.softmax(1); a.log_softmax(1)
F.gelu(a, approximate="tanh")
F.silu(a); F.elu(a); F.leaky_relu(a); F.softplus(a); F.hardswish(a); F.mish(a); F.normalize(a)
F.layer_norm(a, (6,)); F.rms_norm(a, (6,)); F.group_norm(a[None], 2); F.instance_norm(a[None])
F.batch_norm(a, None, None, training=True); F.mse_loss(a, b); F.l1_loss(a, b); F.huber_loss(a, b)
F.cross_entropy(a, i[:, 0]); F.cross_entropy(a, i[:, 0], label_smoothing=0.1)
F.binary_cross_entropy_with_logits(a, b.sigmoid()); F.kl_div(a.log_softmax(1), b.softmax(1))
F.conv2d(a[None, None], b[None, None, :2, :2]); F.avg_pool2d(a[None, None], 2)
F.max_pool2d(a[None, None], 2); F.interpolate(a[None, None], scale_factor=2)
F.interpolate(a[None, None], scale_factor=2, mode="bilinear"); F.unfold(a[None, None], 2)
F.grid_sample(a[None, None], b.view(1, 3, 4, 2).tanh(), align_corners=False)
F.pixel_shuffle(a.view(1, 4, 2, 3), 2); F.relu(a); F.prelu(a, b[0, :1]); a.cummax(1)
F.scaled_dot_product_attention(a[None, None], b[None, None], a[None, None])
torch.arange(5, device=a.device); torch.linspace(0, 1, 5, device=a.device); torch.ones_like(a)
torch.autograd.grad((x := a.clone().requires_grad_()).pow(2).sum(), x)
torch.bucketize(a, b[0].sort()[0])
"""


def listed(value: Any) -> list[torch.Tensor]:
    return list(value) if isinstance(value, tuple | list) else [value]


def compare(call: str, inputs: dict[str, torch.Tensor]) -> None:
    scope = {"torch": torch, "F": F}
    expected = listed(eval(call, {**scope, **inputs}))
    found = listed(eval(call, {**scope, **{k: v.to("npu") for k, v in inputs.items()}}))
    for there, here in zip(found, expected, strict=True):
        # float32 on both sides; products and sums of a few dozen terms, in another order.
        torch.testing.assert_close(there.cpu(), here, rtol=1e-4, atol=1e-4, equal_nan=True)


def main() -> None:
    torch.manual_seed(0)
    inputs = {"a": torch.randn(4, 6), "b": torch.randn(4, 6), "i": torch.randint(0, 4, (4, 6))}
    calls = [call.strip() for line in CALLS.split("\n") for call in line.split("; ") if call]
    for call in calls:
        try:
            compare(call, inputs)
        except Exception as error:
            print(f"{call}: {error!s:.200}")
    print(len(calls), "calls")


if __name__ == "__main__":
    main()
