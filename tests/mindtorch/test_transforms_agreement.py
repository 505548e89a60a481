"""torch.func's refusals, texts inside of transforms, and Functions under them, as torch has them."""

import pytest

from tests.mindtorch.agreement import agree


def functions(t):
    class Plain(t.autograd.Function):
        @staticmethod
        def forward(x):
            return x.exp()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(output)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0]

    class Mapped(Plain):
        generate_vmap_rule = True

    class Moving(Mapped):
        @staticmethod
        def jvp(ctx, tangent):
            return tangent * ctx.saved_tensors[0].exp() + 3

    return Plain, Mapped, Moving


def text_inside(transform, t, x):
    texts = []

    def seen(v):
        texts.append(repr(v))
        texts.append(repr(v * 2))
        return (v * 2).sum()

    return transform(seen)(x), texts


def written(t, x):
    y = t.zeros(3)
    y[0] = x[0] ** 2
    y[1:] = x.sum() * x * 3
    return y.sin()


ROWS = """
vmap(lambda v: t.zeros(3).add_(v))(x)
vmap(lambda v: t.zeros(3).sub_(v))(x)
vmap(lambda v: t.zeros(2, 3).atan2_(v))(x)
vmap(lambda v: t.zeros(3).masked_fill_(v > 0, 1))(x)
vmap(lambda v: t.zeros(3).scatter_add_(0, t.tensor([0, 1, 2]), v))(x)
vmap(lambda v: v.new_zeros(3).add_(v))(x)
vmap(vmap(lambda v: v.new_full((2,), 3).mul_(v)))(x)
vmap(lambda v: v.sum(3))(x)
vmap(lambda v: t.cat([v, v], 1))(x)
vmap(t.bmm)(x, x)
vmap(lambda v: v.requires_grad_())(x)
vmap(lambda v: v.data)(x)
vmap(lambda v: t.allclose(v, v))(x)
vmap(lambda v: t.equal(v, v))(x)
vmap(lambda v: t.arange(v.sum()))(x)
vmap(lambda v: f"{v.sum():.2f}")(x)
vmap(func.grad(lambda v: v.sum() if v.sum() > 0 else -v.sum()))(x)
[vmap(lambda v: (kept.append(v), v)[1])(x), kept[0] + 1]
func.grad(lambda v: v.requires_grad_().sum())(x)
func.grad(lambda v: (v * t.ones(3, requires_grad=True)).sum())(x)
func.grad(lambda v: v.sum(), argnums=())(x)
func.jvp(lambda v: t.ones(2), (x,), (x,), strict=True)
func.stack_module_state([t.nn.Linear(1, 1), t.nn.Linear(1, 1).requires_grad_(False)])
func.jacrev(lambda v: written(t, v))(x[0, :2])
func.jacfwd(lambda v: written(t, v))(x[0, :2])
func.hessian(lambda v: written(t, v).sum())(x[0, :2])
text_inside(func.grad, t, x)
text_inside(func.hessian, t, x[0])[1]
vmap(lambda v: text_inside(func.grad, t, v)[0])(x)
func.grad(lambda v: text_inside(func.grad, t, v)[0].sum())(x[0])
func.jvp(Plain.apply, (x,), (x,))
func.jvp(lambda v: v * Plain.apply(x), (x,), (x,))
func.jvp(lambda v: func.grad(lambda w: Plain.apply(w).sum())(v), (x,), (x,))
func.hessian(lambda v: Mapped.apply(v).sum())(x[0])
func.jacfwd(Plain.apply)(x[0])
func.jacrev(Mapped.apply)(x[0])
func.jvp(lambda v: Moving.apply(v).sin(), (x,), (x,))
func.grad(lambda v: func.jvp(Moving.apply, (v,), (x,))[1].sum())(x)
""".strip().splitlines()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("row", ROWS)
def test_transforms_agree_with_torch(row):
    def run(t):
        names = dict(zip(("Plain", "Mapped", "Moving"), functions(t), strict=True))
        x = (t.arange(6.0).reshape(2, 3) * 0.7).cos()
        return eval(row, {**globals(), **names, "t": t, "func": t.func, "vmap": t.vmap, "x": x,
                          "kept": []})  # fmt: skip

    agree(run, digits=5)
