import torch, sys

dev = sys.argv[1]
torch.manual_seed(9)
D = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.LeakyReLU(0.2), torch.nn.Linear(8, 1)).to(
    dev
)
real, fake = torch.randn(4, 3).to(dev), torch.randn(4, 3).to(dev)
a = torch.rand(4, 1).to(dev)
x = (a * real + (1 - a) * fake).requires_grad_()
(g,) = torch.autograd.grad(D(x).sum(), x, create_graph=True)
gp = ((g.norm(2, dim=1) - 1) ** 2).mean()
(D(fake).mean() - D(real).mean() + 10 * gp).backward()
print(gp, g.grad_fn is not None)
print(D[0].weight.grad)
y = torch.linspace(-1, 1, 5).to(dev).requires_grad_()
f = (y**3 + torch.sin(y)).sum()
(d1,) = torch.autograd.grad(f, y, create_graph=True)
(d2,) = torch.autograd.grad(d1.sum(), y, create_graph=True)
(d3,) = torch.autograd.grad(d2.sum(), y)
print(d1, d2, d3, sep="\n")
print(torch.autograd.functional.hessian(lambda t: (t**3).sum(), y.detach()))
print(torch.autograd.functional.jacobian(lambda t: t.cumsum(0), y.detach()[:3]))
