import torch, sys

dev = sys.argv[1]
torch.manual_seed(3)
V = 11
target, draft = torch.randn(V, V).softmax(-1).to(dev), torch.randn(V, V).softmax(-1).to(dev)


def greedy(m, t, n):
    out = [t]
    for _ in range(n):
        out.append(int(m[out[-1]].argmax()))
    return out


seq = greedy(draft, 3, 6)
u = torch.linspace(0.1, 0.9, 6).to(dev)
accepted = 0
for i, (a, b) in enumerate(zip(seq, seq[1:])):
    r = target[a, b] / draft[a, b]
    if u[i] < r:
        accepted += 1
    else:
        p = (target[a] - draft[a]).clamp_min(0)
        p /= p.sum()
        print("resampled from", p.topk(3))
        break
print(seq, accepted)
print(torch.multinomial(target[0].cpu(), 4, generator=torch.Generator().manual_seed(5)))
