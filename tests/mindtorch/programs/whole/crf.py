import torch, sys

dev = sys.argv[1]
torch.manual_seed(15)
T, K = 6, 4
emit = torch.randn(T, K).to(dev).requires_grad_()
trans = torch.randn(K, K).to(dev).requires_grad_()
alpha = emit[0]
for t in range(1, T):
    alpha = torch.logsumexp(alpha[:, None] + trans, 0) + emit[t]
z = alpha.logsumexp(0)
tags = torch.tensor([0, 1, 3, 2, 2, 1], device=dev)
gold = emit[torch.arange(T, device=dev), tags].sum() + trans[tags[:-1], tags[1:]].sum()
(z - gold).backward()
print(z, gold)
print(emit.grad)
print(trans.grad)
with torch.no_grad():
    v, back = emit[0], []
    for t in range(1, T):
        v, b = (v[:, None] + trans).max(0)
        v = v + emit[t]
        back.append(b)
    path = [int(v.argmax())]
    for b in reversed(back):
        path.append(int(b[path[-1]]))
print(path[::-1], v)
