import torch, sys

dev = sys.argv[1]
torch.manual_seed(29)
X = torch.randn(20, 3).to(dev)
wt = torch.tensor([1.0, -2.0, 0.5], device=dev)
y = X @ wt + 0.1 * torch.randn(20).to(dev)
w = torch.zeros(3, device=dev, requires_grad=True)
opt = torch.optim.LBFGS([w], max_iter=5, line_search_fn="strong_wolfe")


def c():
    opt.zero_grad()
    l = ((X @ w - y) ** 2).mean()
    l.backward()
    return l


for _ in range(2):
    print(opt.step(c))
print(w)
print(torch.linalg.lstsq(X.cpu(), y.cpu()[:, None]).solution.T)
print(torch.corrcoef(X.T), torch.cov(X.T).diag(), X.mean(0), X.var(unbiased=False))
for O in ("Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop"):
    v = torch.ones(2, device=dev, requires_grad=True)
    o = getattr(torch.optim, O)([v])
    [(o.zero_grad(), (v**2).sum().backward(), o.step()) for _ in range(2)]
    print(O, v.tolist())
