import torch, sys

dev = sys.argv[1]
dtype = torch.float64 if dev == "cpu" else torch.float32
f = (
    torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    .to(dev)
    .to(dtype)
)
with torch.no_grad():
    for i, p in enumerate(f.parameters()):
        p.copy_(torch.linspace(-0.5, 0.5, p.numel(), dtype=dtype).view_as(p))


def rk4(y, h):
    k1 = f(y)
    k2 = f(y + h / 2 * k1)
    k3 = f(y + h / 2 * k2)
    k4 = f(y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


y = torch.tensor([[1.0, 0.5]], dtype=dtype, device=dev, requires_grad=True)
ys = [y]
for _ in range(5):
    ys.append(rk4(ys[-1], 0.1))
tr = torch.stack(ys).squeeze(1)
tr[-1].sum().backward()
print(tr.tolist())
print(y.grad.tolist(), f[0].bias.grad.tolist())
print(torch.trapezoid(tr[:, 0], dx=0.1).item())
