"""Operators that torch_npu calls by their type names: prints those that differ from the CPU."""

import torch
import torch_npu
from torch.nn import functional

# Convolutions of float32 are in HF32 otherwise, as on hardware.
torch.npu.conv.allow_hf32 = False

torch.manual_seed(0)
x = torch.randn(4, 6)
on = x.to("npu")
CASES = {
    "slice": (torch_npu.npu_slice(on, [1, 2], [2, 3]), x[1:3, 2:5]),
    "indexing": (torch_npu.npu_indexing(on, [0, 1], [4, 6], [1, 2]), x[:, 1:6:2]),
    "pad": (torch_npu.npu_pad(on, [1, 1, 2, 2]), functional.pad(x, (2, 2, 1, 1))),
    "transpose": (torch_npu.npu_transpose(on, [1, 0]), x.t()),
    "confusion": (torch_npu.npu_confusion_transpose(on, [1, 0], (6, 4), True), x.t()),
    "broadcast": (torch_npu.npu_broadcast(on[:1], (4, 6)), x[:1].expand(4, 6)),
    "mish": (torch_npu.npu_mish(on), functional.mish(x)),
    "silu": (torch_npu.npu_silu(on), functional.silu(x)),
    "sort": (torch_npu.npu_sort_v2(on), x.sort()[0]),
    "min": (torch_npu.npu_min(on, 1)[0], x.min(1)[0]),
    "max": (torch_npu.npu_max(on, 1)[0], x.max(1)[0]),
}


def after_a_refusal() -> float:
    """An operator that nobody has is named; the process works on."""
    batch = torch.rand(2, 3, 4).to("npu")
    try:
        torch_npu.npu_normalize_batch(batch, torch.tensor([2, 4], dtype=torch.int32).to("npu"))
        torch_npu.npu.synchronize()
    except RuntimeError as refusal:
        if "operator NormalizeBatch is not among those" not in str(refusal):
            raise
    return (torch.ones(3).to("npu") + 1).sum().item()


if __name__ == "__main__":
    for name, (given, expected) in CASES.items():
        if not torch.allclose(given.cpu(), expected, atol=1e-6):
            print(name)
    print(after_a_refusal())
