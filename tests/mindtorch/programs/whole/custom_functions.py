"""Custom autograd Functions: double backward, setup_context, jvp, vmap, and the usual mistakes."""
import torch
from torch.autograd import Function, gradcheck, gradgradcheck
from torch.autograd.function import once_differentiable

torch.manual_seed(0)

class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x ** 2

class ScaledDot(Function):
    generate_vmap_rule = True
    @staticmethod
    def forward(a, b, scale):
        return (a * b).sum(-1) * scale
    @staticmethod
    def setup_context(ctx, inputs, output):
        a, b, ctx.scale = inputs
        ctx.save_for_backward(a, b)
        ctx.save_for_forward(a, b)
    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        need, g = ctx.needs_input_grad, g.unsqueeze(-1) * ctx.scale
        return g * b if need[0] else None, g * a if need[1] else None, None
    @staticmethod
    def jvp(ctx, ta, tb, _):
        a, b = ctx.saved_tensors
        parts = [(t * o).sum(-1) for t, o in ((ta, b), (tb, a)) if t is not None]
        return sum(parts) * ctx.scale

class TopVal(Function):
    @staticmethod
    def forward(ctx, x):
        v, i = x.max(-1)
        ctx.save_for_backward(i)
        ctx.n = x.shape[-1]
        ctx.mark_non_differentiable(i)
        return v, i
    @staticmethod
    @once_differentiable
    def backward(ctx, gv, gi):
        (i,) = ctx.saved_tensors
        return torch.zeros(*gv.shape, ctx.n, dtype=gv.dtype).scatter_(-1, i.unsqueeze(-1), gv.unsqueeze(-1))

x = torch.tensor([1.0, -2.0, 0.5], dtype=torch.double, requires_grad=True)
y = Cube.apply(x)
(g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
(gg,) = torch.autograd.grad(g.sum(), x)
print("cube", y.tolist(), g.tolist(), gg.tolist())
print("grad_fn", type(y.grad_fn).__name__, "checks", gradcheck(Cube.apply, (x,)), gradgradcheck(Cube.apply, (x,)))

a, b = torch.randn(4, 3, dtype=torch.double, requires_grad=True), torch.randn(4, 3, dtype=torch.double, requires_grad=True)
print("dot", gradcheck(lambda u, w: ScaledDot.apply(u, w, 2.0), (a, b)),
      gradcheck(lambda u: ScaledDot.apply(u, b.detach(), 2.0), (a,), check_forward_ad=True))
ps = torch.func.vmap(torch.func.grad(lambda u, w: ScaledDot.apply(u, w, 2.0)))(a.detach(), b.detach())
print("vmap of grad:", torch.allclose(ps, 2 * b.detach()), tuple(ps.shape))

v, i = TopVal.apply(a)
print("top", i.tolist(), i.requires_grad, v.requires_grad)
(ga,) = torch.autograd.grad(v.pow(2).sum(), a, create_graph=True)
print("one hot grads:", torch.allclose(ga.sum(-1), 2 * v), (ga != 0).sum(-1).tolist(), ga.requires_grad)
leaf = torch.zeros(3, requires_grad=True)

class Wrong(Function):
    @staticmethod
    def forward(ctx, x, y):
        return x + y
    @staticmethod
    def backward(ctx, g):
        return g

for name, bad in {
    "twice": lambda: ga.sum().backward(),
    "count": lambda: Wrong.apply(leaf, leaf.clone()).sum().backward(),
    "instance": lambda: Cube()(x),
    "freed": lambda: (lambda s: (s.backward(), s.backward()))(Cube.apply(x).sum()),
}.items():
    try:
        bad()
    except RuntimeError as e:
        print(name, "->", str(e).splitlines()[0][:85])
