import torch, sys

dev = sys.argv[1]
x = torch.arange(12.0, device=dev).reshape(3, 4)
y = x.t()
z = x[1:, ::2]
z += 100
print(x, y.stride(), z.storage_offset(), y.is_contiguous())
x[x > 50] = -1
x[:, 1] = torch.tensor([7.0, 8.0, 9.0], device=dev)
x[[0, 2], [0, 3]] = 5
print(x)
x.fill_diagonal_(0).clamp_(max=6).mul_(2)
print(x, x._version)
a = torch.zeros(2, 2, device=dev).requires_grad_()
b = a * 1
b[0] = 3
b.sum().backward()
print(a.grad)
i = torch.tensor([0, 1, 0], device=dev)
c = torch.zeros(3, device=dev)
c.index_put_((i,), torch.ones(3, device=dev), accumulate=True)
print(c, c.scatter_(0, i, 9.0), torch.take(x, i), x.diagonal(), x.as_strided((2, 2), (1, 2)))
print(
    torch.tensor([3, 1, 2], device=dev).sort(),
    torch.searchsorted(torch.tensor([1, 3, 5], device=dev), torch.tensor([2, 3], device=dev)),
    torch.bucketize(torch.tensor([2.5], device=dev), torch.tensor([1.0, 2.0, 3.0], device=dev)),
    torch.histc(x, 4),
    torch.unique(x, sorted=True),
)
print(
    x.nonzero(),
    torch.where(x > 3),
    x.argmax(),
    x.median(),
    x.quantile(0.3),
    x.std(0),
    x.cumprod(1),
    torch.tril_indices(3, 3),
    torch.cartesian_prod(i, i)[:2],
)
