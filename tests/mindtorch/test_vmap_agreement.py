"""vmap and what is made with it, against torch's: values, refusals, and that batches go at once."""

import warnings
from importlib import import_module

import pytest

import mindtorch
from tests.mindtorch.agreement import agree, torch


def data(t):
    def values(*shape):
        n = 1
        for s in shape:
            n *= s
        return (t.arange(float(n)) * 1.7 + 0.3).sin().reshape(shape) * 2

    return values(4, 3, 3), values(3, 4, 3).transpose(0, 1), values(4, 3)


# Functions of one matrix a [3, 3]; F is torch.nn.functional.
ONE = """
a.sum()
a.mean(-1)
a.std(0)
a.max()
a.max(0)
a.argmax()
a.argmax(1)
a.sort(0)
a.topk(2)
a.cumsum(1)
a.prod()
a.norm(dim=0)
t.softmax(a, -1)
F.log_softmax(a, 0)
a.t()
a.permute(1, 0)
a.unsqueeze(0).unsqueeze(-1)
a[None].squeeze()
a.flatten()
a.view(9)
a.expand(2, 3, 3)
a.repeat(2, 1)
a.flip(0)
a.roll(1, 0)
a.roll(1)
a.tril()
a.diagonal()
a.chunk(3, 1)
a.unbind(1)
t.cat([a, a], 1)
t.stack([a, a], 1)
a[:, 1:]
a[..., 0]
a[:, [0, 2]]
a.clone().mul_(2)
F.pad(a, (1, 1))
F.layer_norm(a, (3,))
F.gelu(a)
a.double()
t.einsum("ij,kj->ik", a, a)
t.linalg.inv(a + 5 * t.eye(3))
t.logsumexp(a, 0)
a.all(1)
a.median()
t.zeros_like(a) + 2 - a
a * t.arange(3)
t.where(a > 0, a, 0.0)
t.outer(a[0], a[1])
a.unfold(0, 2, 1)
F.normalize(a, dim=0)
F.conv1d(a[None], t.ones(2, 3, 2))
F.max_pool1d(a[None], 2)
F.one_hot(a.argmax(1), 3)
t.histc(a, 3)
a.gather(1, t.tensor([[0], [1], [2]]))
a.scatter(1, t.tensor([[0], [1], [2]]), 0.0)
a.index_select(0, t.tensor([1, 0]))
a @ a[0]
a[0] @ a
a[0] @ a[1]
t.addmm(a, a, a)
F.linear(a, a, a[0])
t.cdist(a, a)
F.mse_loss(a, a * 2)
F.cross_entropy(a, t.tensor([0, 1, 2]))
F.nll_loss(a, t.tensor([0, -100, 2]))
F.binary_cross_entropy_with_logits(a, (a > 0).float())
F.scaled_dot_product_attention(a[None], a[None], a[None])
F.embedding(t.tensor([0, 2]), a)
""".strip().split("\n")

TWO = """
a + b
a @ b
a @ b.t()
t.linalg.solve(b + 5 * t.eye(3), a)
a[0] * b
t.where(a > b, a, b)
t.cat([a, b])
F.mse_loss(a, b)
a.sum() * b
t.maximum(a, b.sum(0))
""".strip().split("\n")


def function(lib, names, line):
    return eval(f"lambda {names}: {line}", {"t": lib, "F": lib.nn.functional})


@pytest.mark.parametrize("line", ONE)
def test_functions_of_one_element(line):
    agree(lambda t: outs(t.func.vmap(function(t, "a", line))(data(t)[0])), digits=4)


@pytest.mark.parametrize("line", TWO)
@pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 2)])
def test_functions_of_two(line, dims):
    def run(t):
        a, b, _ = data(t)
        pair = [v[0] if d is None else v.movedim(0, d) for v, d in zip((a, b), dims, strict=True)]
        return outs(t.func.vmap(function(t, "a, b", line), in_dims=dims)(*pair))

    agree(run, digits=4)


def outs(value):
    """Results in one layout: which strides the batch gets is each library's."""
    if isinstance(value, tuple | list):
        return tuple(v.contiguous() for v in value)
    return value.contiguous()


def scenes():
    def numbers_of_each(t, vmap, a, b, c):
        i = t.tensor([[0, 2], [1, 1], [2, 0], [0, 1]])
        both = vmap(lambda x, n: (x[n], x[n[0]], x.index_select(0, n), x[n, n]))(a, i)
        return *both, vmap(lambda n: c[n])(i), vmap(lambda x, n: x.gather(0, n))(c, i)

    def writes(t, vmap, a, b, c):
        def write(x):
            x = x.clone()
            x[0] = 5
            x[:, 1] += x[:, 0]
            return x

        return vmap(write)(a)

    def writes_to_the_input(t, vmap, a, b, c):
        vmap(lambda x: x.add_(1))(c)
        return c

    def nested(t, vmap, a, b, c):
        return vmap(vmap(lambda x, y: x @ y, in_dims=(None, 0)), in_dims=(0, None))(c, c)

    def gradients_per_sample(t, vmap, a, b, c):
        def loss(w, x):
            return ((x @ w).tanh() ** 2).sum()

        w = a[0, :, :2]
        return vmap(t.func.grad(loss), in_dims=(None, 0))(w, c)

    def gradients_of_gradients(t, vmap, a, b, c):
        inner = t.func.grad(lambda w, x: (w * x).sum() ** 2)
        return vmap(vmap(inner, in_dims=(None, 0)), in_dims=(None, 0))(c[0], a)

    def jacobians(t, vmap, a, b, c):
        f = t.func

        def g(x):
            return (x @ a[0]).tanh()

        return (f.jacrev(g)(c[0]), f.hessian(lambda x: g(x).sum())(c[0]), vmap(f.jacrev(g))(c),
                f.jacrev(lambda x, y: (x * y).sum(0), argnums=(0, 1))(c, c)[1])  # fmt: skip

    def products(t, vmap, a, b, c):
        f = t.func
        pulled = vmap(lambda x: f.vjp(t.sin, x)[1](t.ones_like(x))[0])(c)
        return pulled, vmap(lambda v: f.jvp(t.sin, (c[0],), (v,))[1])(c)

    def through_a_graph(t, vmap, a, b, c):
        leaf = c.clone().requires_grad_()
        vmap(lambda x: (x**2).sum())(leaf).sum().backward()
        return leaf.grad

    def places(t, vmap, a, b, c):
        split = vmap(lambda x: (x, x * 2), in_dims=1, out_dims=(0, 1))(c)
        return *split, vmap(lambda x: c[0], out_dims=None)(c), vmap(lambda x: c[0])(c)

    def chunks(t, vmap, a, b, c):
        return vmap(t.sin, chunk_size=3)(c), vmap(t.sin)(c[:0])

    def named(t, vmap, a, b, c):
        return vmap(lambda d, y: d["x"] + y, in_dims=({"x": 0}, None))({"x": c}, c[0])

    def same_draws(t, vmap, a, b, c):
        return vmap(lambda x: t.rand(2), randomness="same")(c).std(0)

    def draws(t, vmap, a, b, c):
        return vmap(lambda x: t.rand(2))(c)

    def dropped(t, vmap, a, b, c):
        return vmap(lambda x: t.nn.functional.dropout(x, 0.5))(c)

    def branches(t, vmap, a, b, c):
        return vmap(lambda x: x if x.sum() > 0 else -x)(c)

    def item(t, vmap, a, b, c):
        return vmap(lambda x: x.sum().item())(c)

    def a_number(t, vmap, a, b, c):
        return vmap(lambda x: 3)(c)

    def of_any_length(t, vmap, a, b, c):
        return vmap(lambda x: x.nonzero())(c)

    def other_sizes(t, vmap, a, b, c):
        return vmap(t.dot)(c, c[0])

    def no_inputs(t, vmap, a, b, c):
        return vmap(lambda: 1)()

    def no_dims(t, vmap, a, b, c):
        return vmap(t.sin, in_dims=None)(c)

    def dim_too_high(t, vmap, a, b, c):
        return vmap(t.sin, in_dims=3)(c)

    def out_dim_too_high(t, vmap, a, b, c):
        return vmap(lambda x: x, out_dims=2)(c)

    def a_mask_as_index(t, vmap, a, b, c):
        return vmap(lambda x: x[x > 0])(c)

    def a_masked_selection(t, vmap, a, b, c):
        return vmap(lambda x: x.masked_select(x > 0))(c)

    def batches_into_a_tensor_without_one(t, vmap, a, b, c):
        return vmap(lambda x: t.zeros(x.shape).copy_(x))(c)

    def batches_by_index_into_a_tensor_without_one(t, vmap, a, b, c):
        return vmap(lambda x: t.zeros(2).index_put_((t.tensor([0]),), x.sum()))(c)

    def in_dim_of_a_fraction(t, vmap, a, b, c):
        return vmap(t.sin, in_dims=(0.5,))(c)

    return [v for k, v in sorted(locals().items()) if callable(v)]


@pytest.mark.parametrize("scene", scenes(), ids=lambda s: s.__name__)
def test_scenes(scene):
    agree(lambda t: outs(scene(t, t.func.vmap, *data(t))), digits=4)


def calls(program):
    """How many times rows run."""
    count = [0]

    class Counting(mindtorch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            count[0] += 1
            return func(*args, **(kwargs or {}))

    with Counting():
        program()
    return count[0]


def test_a_batch_runs_at_once():
    def loss(w, x):
        return ((x @ w).tanh() ** 2).sum()

    each = mindtorch.func.vmap(mindtorch.func.grad(loss), in_dims=(None, 0))
    w = mindtorch.ones(3, 2)
    few, many = (mindtorch.ones(n, 3) for n in (2, 200))
    assert calls(lambda: each(w, many)) <= calls(lambda: each(w, few)) + 4


def test_an_npu_does_the_same():
    def run(device):
        a, b, c = (v.to(device) for v in data(mindtorch))
        f = mindtorch.func
        return (f.vmap(lambda x, y: (x @ y).softmax(-1).sum(0))(a, b),
                f.vmap(f.grad(lambda x: (x @ a[0]).tanh().sum()))(c),
                f.vmap(lambda x: x[0:2].sort().values)(c))  # fmt: skip

    for ours, host in zip(run("npu"), run("cpu"), strict=True):
        assert ours.device.type == "npu"
        assert mindtorch.allclose(ours.cpu(), host, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("rule", ["derived", "own", "both", "none"])
def test_a_function_of_a_user_is_mapped_by_its_rule(rule):
    def run(t):
        class Cube(t.autograd.Function):
            generate_vmap_rule = rule in ("derived", "both")

            @staticmethod
            def forward(x):
                return x**3

            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.save_for_backward(*inputs)

            @staticmethod
            def backward(ctx, grad):
                return grad * 3 * ctx.saved_tensors[0] ** 2

        def own(info, in_dims, x):
            return Cube.apply(x) + info.batch_size, in_dims[0]

        if rule in ("own", "both"):
            Cube.vmap = staticmethod(own)
        x = t.tensor([[1.0, 2.0], [3.0, 4.0]])
        try:
            slopes = t.func.vmap(t.func.grad(lambda v: Cube.apply(v).sum()))(x)
            return t.func.vmap(Cube.apply)(x).tolist(), slopes.tolist()
        except RuntimeError as error:
            return str(error)

    assert run(torch) == run(mindtorch)


def test_a_function_with_its_context_in_forward_is_not_mapped():
    def run(t):
        class Same(t.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1

        with pytest.raises(RuntimeError, match="must override the setup_context") as caught:
            t.func.vmap(Same.apply)(t.ones(2))
        return str(caught.value)

    assert run(torch) == run(mindtorch)


assert torch


def test_functorch_is_torch_func_by_its_older_names():
    import functorch as theirs

    from mindtorch._compat import functorch as ours

    def outcome(functorch, library):
        layer = library.nn.Linear(2, 3)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            function, params = functorch.make_functional(layer)
            functorch.vmap(library.sin)(library.ones(2))
            ensemble, stacked, none = functorch.combine_state_for_ensemble([layer, layer])
            with pytest.raises(RuntimeError) as refused:
                functorch.make_functional(library.nn.BatchNorm1d(2))
        out = function(params, library.ones(2)) - layer(library.ones(2))
        outs = library.func.vmap(ensemble, (0, 0, None))(stacked, none, library.ones(2))
        texts = [str(w.message) for w in caught], str(refused.value), str(function), str(ensemble)
        return *texts, out.tolist(), outs.shape, none, function.param_names

    assert outcome(ours, mindtorch) == outcome(theirs, torch)


def test_functorch_experimental_batches_in_parts():
    def outcome(package, library):
        control = import_module(f"{package}.experimental.control_flow")
        experimental = import_module(f"{package}.experimental")
        seen, x = [], library.arange(10.0).reshape(5, 2)

        def summed(v):
            seen.append(v.shape)
            return v.sum()

        parts = [experimental.chunk_vmap(summed, chunks=n)(x).tolist() for n in (1, 2, 3)]
        mapped = control.map(lambda v, y: v * y, x, library.ones(2))
        return parts, len(seen), mapped.tolist(), control.cond is library.cond

    assert outcome("mindtorch._compat.functorch", mindtorch) == outcome("functorch", torch)
