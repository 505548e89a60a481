import torch, sys
import torch.nn.functional as F

dev = sys.argv[1]
torch.manual_seed(6)
B, L, D, N = 2, 6, 3, 4
u = torch.randn(B, L, D, requires_grad=True)
delta = F.softplus(torch.randn(B, L, D))
A = -torch.exp(torch.randn(D, N))
Bm = torch.randn(B, L, N)
Cm = torch.randn(B, L, N)
u2, delta, A, Bm, Cm = [t.to(dev) for t in (u, delta, A, Bm, Cm)]
dA = torch.exp(torch.einsum("bld,dn->bldn", delta, A))
dBu = torch.einsum("bld,bln,bld->bldn", delta, Bm, u2)
h = torch.zeros(B, D, N, device=dev)
ys = []
for i in range(L):
    h = dA[:, i] * h + dBu[:, i]
    ys.append(torch.einsum("bdn,bn->bd", h, Cm[:, i]))
y = torch.stack(ys, 1)
y.square().sum().backward()
print(y.detach())
print(u.grad[0])
print(dA.shape, dBu.stride())
