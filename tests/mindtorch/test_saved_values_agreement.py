"""A node shows what it keeps by torch's names, also in `dir`, as programs that draw graphs ask."""

import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")

SAVED = "_saved_"
CALLS = """
a*b
a*2
a*2.5
a/b
a**3
a**b
a.exp()
a.log()
a.sqrt()
a.tanh()
a.sigmoid()
a.relu()
a.abs()
a.sin()
a.sum(-1)
a.softmax(-1)
a.log_softmax(1)
a@b.t()
F.linear(a,b)
F.linear(a,b,b[:,0])
t.bmm(a[None],b.t()[None])
t.where(a>1,a,b)
t.cat([a,b],1)
a[0]
a.transpose(0,1)
a.permute(1,0)
a.clamp(0.6,1.0)
F.gelu(a)
F.silu(a)
F.leaky_relu(a)
F.elu(a)
F.softplus(a)
F.mse_loss(a,b)
a.norm()
a.max(1)[0]
a.max()
a.topk(2)[0]
a.gather(1,t.zeros(3,1,dtype=t.int64))
a.masked_fill(a>1,0.0)
a.logsumexp(1)
t.maximum(a,b)
t.addcmul(a,b,a,value=2)
a.repeat(2,1)
a.flip(0)
F.layer_norm(a,[4])
F.conv2d(a[None,None],b[None,None,:2,:2])
""".strip().splitlines()


def results(lib, call):
    """The node's name and what it shows, by name."""
    scope = {"t": lib, "F": lib.nn.functional}
    numbers = [[0.5 + (i * 7 + j * 3) % 5 / 4 for j in range(4)] for i in range(3)]
    scope["a"] = lib.tensor(numbers, requires_grad=True)
    scope["b"] = lib.tensor([row[::-1] for row in numbers], requires_grad=True)
    node = eval(call, scope).grad_fn
    return type(node).__name__, {
        name: text(lib, getattr(node, name)) for name in dir(node) if name.startswith(SAVED)
    }


def text(lib, value):
    if isinstance(value, tuple):
        return tuple(text(lib, v) for v in value)
    if not isinstance(value, lib.Tensor):
        return value
    numbers = [round(v, 4) for v in value.detach().flatten().tolist()]
    return str(value.dtype), tuple(value.shape), value.requires_grad, numbers


@pytest.mark.parametrize("call", CALLS)
def test_nodes_show_what_both_keep_under_torchs_names(call):
    (name, ours), (oracle_name, oracle) = results(mindtorch, call), results(torch, call)
    assert name == oracle_name
    both = ours.keys() & oracle.keys()
    assert {n: ours[n] for n in both} == {n: oracle[n] for n in both}
    assert both or not oracle, f"{name} shows none of {sorted(oracle)}"
    tensors = {
        n for n, value in oracle.items() if isinstance(value, tuple) and "torch." in value[0:1]
    }
    assert tensors <= both


def test_the_tensors_are_the_ones_that_were_used():
    a = mindtorch.ones(2, requires_grad=True)
    b = mindtorch.ones(2, requires_grad=True)
    node = (a * b).grad_fn
    assert node._saved_self is a
    assert node._saved_other is b


@pytest.mark.parametrize("lib", [mindtorch, torch])
def test_what_a_backward_freed_is_refused(lib):
    a = lib.ones(2, requires_grad=True)
    y = a.exp()
    y.sum().backward()
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        getattr(y.grad_fn, SAVED + "result")
    with pytest.raises(AttributeError, match="ExpBackward0"):
        getattr(y.grad_fn, SAVED + "nothing")


def _hooks_of_nodes(lib):
    """What hooks on what a node keeps do, and what is refused."""
    lines = []

    def attempt(call):
        try:
            lines.append(str(call()).partition("object at")[0])
        except Exception as error:
            lines.append(f"{type(error).__name__} {str(error)[:120]}")

    def writes(t):
        t.add_(1)
        return t

    a = lib.ones(3, requires_grad=True)
    b = (a * 2).exp()
    raw = b.grad_fn._raw_saved_result
    raw.register_hooks(lambda t: t * 1, lambda t: t * 3)
    attempt(lambda: raw.register_hooks(lambda t: t, lambda t: t))
    attempt(lambda: b.grad_fn._saved_result.detach())
    b.sum().backward()
    lines.append(a.grad.tolist())
    attempt(lambda: raw.register_hooks(lambda t: t, lambda t: t))
    attempt(lambda: b.grad_fn._raw_saved_self)
    c = a.exp()
    attempt(lambda: c.grad_fn._raw_saved_result.register_hooks(writes, lambda t: t))

    class Product(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y, g * x

    d = Product.apply(a, a.detach() * 2)
    lines.append(type(d.grad_fn).__mro__[1].__name__)
    d.grad_fn._raw_saved_tensors[1].register_hooks(lambda t: t, lambda t: t * 5)
    a.grad = None
    d.sum().backward()
    return [*lines, a.grad.tolist()]


def test_hooks_on_what_a_node_keeps():
    assert _hooks_of_nodes(mindtorch) == _hooks_of_nodes(torch)
