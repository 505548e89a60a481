import torch, sys

dev = sys.argv[1]
torch.manual_seed(17)
edge = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]], device=dev)
x = torch.randn(4, 3).to(dev).requires_grad_()
W = torch.randn(3, 2).to(dev)
src, dst = edge
deg = torch.zeros(4, device=dev).scatter_add_(0, dst, torch.ones(5, device=dev))
msg = (x @ W)[src] / deg[dst].sqrt()[:, None]
out = torch.zeros(4, 2, device=dev).index_add(0, dst, msg)
mx = torch.full((4, 2), float("-inf"), device=dev).scatter_reduce(
    0, dst[:, None].expand(-1, 2), msg, "amax"
)
(out.relu().sum() + mx[mx.isfinite()].sum()).backward()
print(deg, out, mx, x.grad, sep="\n")
adj = torch.sparse_coo_tensor(edge, torch.ones(5, device=dev), (4, 4)).coalesce()
print(torch.sparse.mm(adj.t(), x.detach()))
print(adj.to_dense())
print(adj.indices().shape)
print(torch.unique(edge, return_counts=True), torch.bincount(dst, minlength=5))
