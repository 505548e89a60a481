import torch, sys

dev = sys.argv[1]
torch.manual_seed(19)
x = torch.randn(3, 4).to(dev)
w1, w2 = torch.randn(8, 4).to(dev), torch.randn(4, 8).to(dev)
full = torch.relu(x @ w1.T) @ w2.T
parts = [torch.relu(x @ a.T) @ b.T for a, b in zip(w1.chunk(2, 0), w2.chunk(2, 1))]
print(torch.allclose(full, sum(parts), atol=1e-5))
print(full)
print([p.stride() for p in w2.chunk(2, 1)])
q = torch.tensor_split(x, 3, dim=1)
print([t.shape for t in q], [t.is_contiguous() for t in q])
print(torch.cat([t.contiguous() for t in q], 1).equal(x), torch.split(x, [1, 3], 1)[1]._is_view())
print(torch.roll(x, 1, 0)[0], x.unfold(1, 2, 1).shape, torch.block_diag(x[:1], x[1:2]).shape)
