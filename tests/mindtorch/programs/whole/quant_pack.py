import torch, sys

dev = sys.argv[1]
torch.manual_seed(7)
w = torch.randn(4, 8).to(dev)
scale = w.abs().amax(1, keepdim=True) / 7
q = torch.clamp(torch.round(w / scale), -8, 7).to(torch.int8)
packed = ((q[:, ::2] & 0xF) | ((q[:, 1::2] & 0xF) << 4)).to(torch.uint8)
lo = (packed & 0xF).to(torch.int8)
hi = (packed >> 4).to(torch.int8)
un = torch.stack([lo, hi], -1).reshape(4, 8)
un = torch.where(un > 7, un - 16, un)
print(torch.equal(un, q), packed.dtype, packed)
print((un * scale - w).abs().max())
print(w.view(torch.int32)[0], w.half().view(torch.int16)[0, :3])
b = torch.tensor([3, 129, 255], dtype=torch.uint8, device=dev)
print(((b.unsqueeze(-1) >> torch.arange(8, device=dev)) & 1).bool())
print(torch.iinfo(torch.int8), q.sum(), q.float().mean().item())
