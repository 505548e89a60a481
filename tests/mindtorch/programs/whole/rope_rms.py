import torch, sys
import torch.nn.functional as F

dev = sys.argv[1]
torch.manual_seed(27)
x = torch.randn(1, 4, 2, 6).to(dev).requires_grad_()
inv = 1.0 / (10000 ** (torch.arange(0, 6, 2).float() / 6))
f = torch.outer(torch.arange(4).float(), inv)
cis = torch.polar(torch.ones_like(f), f).to(dev)
xc = torch.view_as_complex(x.reshape(1, 4, 2, 3, 2))
r = torch.view_as_real(xc * cis[None, :, None]).flatten(3)
print(r[0, 1])
n = F.rms_norm(r, (6,))
print(n[0, 0], n.grad_fn)
n.pow(3).sum().backward()
print(x.grad[0, 3])
print(cis.dtype, cis.abs().mean(), F.silu(r).sum(), F.softplus(r).mean())
h = torch.repeat_interleave(r, 2, dim=2)
print(h.shape, h.stride())
