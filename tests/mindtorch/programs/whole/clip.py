import torch, sys
import torch.nn as nn, torch.nn.functional as F

dev = sys.argv[1]
torch.manual_seed(13)
img, txt = nn.Linear(5, 3, bias=False).to(dev), nn.Embedding(7, 3, padding_idx=0).to(dev)
scale = nn.Parameter(torch.tensor(2.6593, device=dev))
a, ids = (
    torch.randn(4, 5).to(dev),
    torch.tensor([[1, 2, 0], [3, 0, 0], [4, 5, 6], [6, 1, 0]], device=dev),
)
mask = (ids != 0).unsqueeze(-1)
t = (txt(ids) * mask).sum(1) / mask.sum(1)
i = F.normalize(img(a), dim=-1)
t = F.normalize(t, dim=-1)
logits = scale.exp() * i @ t.t()
lab = torch.arange(4, device=dev)
loss = (F.cross_entropy(logits, lab, label_smoothing=0.1) + F.cross_entropy(logits.t(), lab)) / 2
loss.backward()
print(loss)
print(logits)
print(scale.grad, txt.weight.grad[0], txt.weight.grad.norm())
print((logits.argmax(1) == lab).float().mean())
print(F.cosine_similarity(i, t))
