import torch, sys
import torch.nn as nn, torch.nn.functional as F

dev = sys.argv[1]
torch.manual_seed(5)
T, D, E, K, C = 10, 4, 3, 2, 5
x = torch.randn(T, D).to(dev)
gate = nn.Linear(D, E).to(dev)
experts = nn.ModuleList(
    nn.Sequential(nn.Linear(D, 8), nn.GELU(), nn.Linear(8, D)) for _ in range(E)
).to(dev)
probs = gate(x).softmax(-1)
w, idx = probs.topk(K, dim=-1)
w = w / w.sum(-1, keepdim=True)
hot = F.one_hot(idx, E)
pos = hot.view(-1, E).cumsum(0).view(T, K, E) * hot - 1
keep = (pos < C) & (pos >= 0)
out = torch.zeros_like(x)
for e, f in enumerate(experts):
    t, k = torch.where(keep[..., e])
    out.index_add_(0, t, f(x[t]) * w[t, k, None])
load = hot.float().sum((0, 1)) / (T * K)
aux = E * (load * probs.mean(0)).sum()
(out.pow(2).mean() + 0.01 * aux).backward()
print(idx.tolist(), keep.sum().item(), load, aux)
print(out)
print(gate.weight.grad)
print(hot.dtype, pos.dtype, keep.any(-1).all().item())
