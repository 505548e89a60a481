import torch, sys

dev = sys.argv[1]
torch.manual_seed(16)
V, B = 8, 3
W = torch.randn(V, V).to(dev).log_softmax(-1)
beams = torch.zeros(1, 1, dtype=torch.long, device=dev)
score = torch.zeros(1, device=dev)
for _ in range(4):
    s = (score[:, None] + W[beams[:, -1]]).flatten()
    score, i = s.topk(B, sorted=True)
    beams = torch.cat([beams[torch.div(i, V, rounding_mode="floor")], (i % V)[:, None]], 1)
print(beams, score)
print(beams.dtype, beams.stride(), score / beams.size(1) ** 0.7)
print(torch.sort(score, descending=False), torch.argsort(beams[:, -1]))
