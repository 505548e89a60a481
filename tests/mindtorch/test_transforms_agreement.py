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


def saved(t, x, function=None):
    with t.autograd.graph.saved_tensors_hooks(lambda v: v, lambda v: v):
        return x.sin().sum() if function is None else function(x)


def within(context, function):
    with context:
        return function()


def half(t, x):
    with t.autograd.forward_ad._set_fwd_grad_enabled(False):
        return x * 0.5


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
[func.jacfwd(g)(x[0]) for g in (lambda v: v.double() ** 2, lambda v: v.half() * 2, lambda v: (v * 2, v.double().sum()))]
func.jacfwd(lambda a, b: a * b[0], (0, 1))(x[0], x[1]), func.jacfwd(lambda v: (v.sum(), v), has_aux=True)(x[0])
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
func.grad(lambda v: saved(t, v))(x)
within(t.no_grad(), lambda: func.vjp(t.sin, x.requires_grad_()))[1](x)
func.jvp(lambda v: v * within(t.no_grad(), v.sin), (x,), (x,))
func.jacfwd(lambda v: within(t.no_grad(), v.sin))(x[0])
func.grad(lambda v: (v * within(t.no_grad(), v.sin)).sum())(x)
within(t.inference_mode(), lambda: func.grad(lambda v: (v**2).sum())(x))
within(t.inference_mode(), lambda: func.hessian(lambda v: (v**3).sum())(x[0]))
saved(t, x, lambda v: func.jacrev(t.sin)(v))
[func.jvp(lambda v: saved(t, v), (x,), (x,)), func.jacfwd(lambda v: saved(t, v))(x[0])]
vmap(lambda v: t.autograd.functional.vjp(t.sum, v))(x)
func.grad(lambda v: t.autograd.functional.jacobian(t.sum, v).sum())(x)
[func.jvp(lambda v: v.mul_(v + 1), (x, ), (x * 2,)), x]
vmap(lambda v: func.jvp(lambda a: (a[1:].copy_(a[:2] * 2), a)[1], (v * 1,), (v * 3,)))(x)
vmap(func.jacfwd(lambda v: v.sin_()))(x)
func.jvp(lambda v: func.jvp(lambda w: w.mul_(3).pow(3), (v,), (t.ones(2, 3),))[1], (x * 1,), (x,))
func.jvp(lambda v: v * half(t, v), (x,), (x,))
func.jvp(lambda v: func.jvp(lambda w: w * half(t, w), (v,), (x,))[1], (x,), (x,))
func.grad(lambda v: t.tensor(len(type(Plain.apply(v).grad_fn).__name__)) + v.sum())(x)
vmap(Mapped.apply, randomness="different")(x)
vmap(lambda v: kept.append(1) or v * 2, randomness="different")(x) * len(kept)
vmap(vmap(lambda v: v + t.rand(()), randomness="same"), randomness="different")(x)[:, 1] - x[:, 1]
""".strip().splitlines()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("row", ROWS)
def test_transforms_agree_with_torch(row):
    def run(t):
        names = dict(zip(("Plain", "Mapped", "Moving"), functions(t), strict=True))
        t.manual_seed(0)
        x = (t.arange(6.0).reshape(2, 3) * 0.7).cos()
        return eval(row, {**globals(), **names, "t": t, "func": t.func, "vmap": t.vmap, "x": x,
                          "kept": []})  # fmt: skip

    agree(run, digits=5)
