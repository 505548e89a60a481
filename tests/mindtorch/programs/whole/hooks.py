import torch, sys

dev = sys.argv[1]
torch.manual_seed(25)
m = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1)).to(dev)
log = []
h = m[0].register_forward_hook(
    lambda mod, i, o: log.append(("fwd", type(mod).__name__, tuple(o.shape)))
)
m[2].register_forward_pre_hook(lambda mod, i: log.append(("pre", len(i))))
m[2].register_full_backward_hook(
    lambda mod, gi, go: log.append(("bwd", tuple(go[0].shape), gi[0] is None))
)
m[0].weight.register_hook(lambda g: g * 2)
m[0].bias.register_post_accumulate_grad_hook(lambda p: log.append(("acc", p.grad.shape)))
m(torch.ones(4, 2, device=dev)).sum().backward()
h.remove()
m(torch.ones(1, 2, device=dev))
print(log)
print(m[0].weight.grad)


class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return x**k

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.k * x ** (ctx.k - 1), None


x = torch.tensor([2.0, 3.0], device=dev, requires_grad=True)
y = F.apply(x, 3)
print(y, y.grad_fn.name())
y.sum().backward()
print(x.grad)
with torch.autograd.set_detect_anomaly(True):
    try:
        torch.sqrt(torch.tensor([-1.0], device=dev, requires_grad=True)).backward()
    except RuntimeError as e:
        print(str(e)[:40])
print(
    torch.autograd.gradcheck(
        lambda t: t.sin() * t, torch.rand(3, dtype=torch.float64, requires_grad=True)
    )
)
