"""Nested tensors of the strided layout do what torch's do."""

import pickle

import pytest
from agreement import agree


def samples(t):
    return [t.arange(6.0).reshape(2, 3), t.arange(12.0).reshape(4, 3) / 7]


def nested(t, **options):
    return t.nested.nested_tensor(samples(t), **options)


def parts(value):
    """The samples as sizes and rounded numbers: libraries differ in last places."""
    if not getattr(value, "is_nested", False):
        return value
    flat = [(tuple(p.shape), p.flatten().tolist()) for p in value.detach().unbind()]
    return [(shape, [round(v, 3) for v in values]) for shape, values in flat]


FUNCTIONS = {
    "printed": repr, "sizes": lambda n: (n.dim(), n.numel(), n.size(0), n.size(2), n.dtype),
    "irregular": lambda n: n.size(1), "shape": lambda n: n.shape, "length": len,
    "shapes": lambda n: n._nested_tensor_size(), "sample": lambda n: n[1], "part": lambda n: n[0, 1],
    "padded": lambda n: n.to_padded_tensor(-1.0), "room": lambda n: n.to_padded_tensor(0, (2, 5, 4)),
    "sum": lambda n: n + n, "twice": lambda n: n * 2, "halved":
    lambda n: n / 2, "negative": lambda n: -n, "dense": lambda n: n + n[0],
    "relu": lambda n: n.relu(), "cos": lambda n: n.cos(), "tanh": lambda n: n.tanh(),
    "softmax": lambda n: n.softmax(-1), "over samples": lambda n: n.softmax(0),
    "transpose": lambda n: n.transpose(1, 2), "batch": lambda n: n.transpose(0, 1),
    "matmul": lambda n: n @ n.transpose(1, 2), "with dense": lambda n: n @ n[0],
    "rows": lambda n: n.sum(-1, keepdim=True), "no keepdim": lambda n: n.sum(-1),
    "reshaped": lambda n: n.reshape(2, -1, 1, 3).transpose(1, 2), "first": lambda n: n.narrow(0, 0, 1),
    "columns": lambda n: n.select(1, 0), "unsqueezed": lambda n: n.unsqueeze(-1),
    "wide": lambda n: n.double(), "clone": lambda n: n.clone(), "in place": lambda n: n.mul_(3),
    "values": lambda n: n.values(),
    "pickled": lambda n: pickle.loads(pickle.dumps(n)) if n.values() is not None else None,
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_samples_have_what_torch_gives_them(name):
    agree(lambda t: parts(FUNCTIONS[name](nested(t))), text=name != "with dense")


def test_functions_of_layers_run_on_each_sample():
    def run(t):
        layer, norm = t.nn.functional.linear, t.nn.functional.layer_norm
        n = nested(t)
        heads = n.reshape(2, -1, 1, 3).transpose(1, 2).contiguous()
        attended = t.nn.functional.scaled_dot_product_attention(heads, heads, heads)
        words = t.nested.nested_tensor([t.tensor([0, 1]), t.tensor([2])])
        return [parts(v) for v in (
            layer(n, t.ones(2, 3), t.ones(2)), norm(n, (3,), t.ones(3), t.zeros(3)), t.nn.functional.gelu(n), attended,
            t.nn.functional.embedding(words, t.arange(12.0).reshape(3, 4)), t.cat([n, n]),
            t.zeros_like(n), *n.chunk(3, -1),
        )]  # fmt: skip

    agree(run)


def test_gradients_go_to_samples_and_to_leaves():
    def run(t):
        a, b = (x.requires_grad_() for x in samples(t))
        (t.nested.as_nested_tensor([a, b]).to_padded_tensor(0.0) ** 2).sum().backward()
        leaf = nested(t, requires_grad=True)
        weight = t.ones(2, 3, requires_grad=True)
        t.nn.functional.linear(leaf, weight).to_padded_tensor(0.0).sum().backward()
        grads = [g.tolist() for g in (a.grad, weight.grad.round(decimals=3))]
        return grads, leaf.is_leaf, parts(leaf.grad)

    agree(run)


@pytest.mark.parametrize("name", ["exp", "log", "sigmoid", "round", "flatten", "var", "unique"])
def test_functions_that_torch_has_no_kernel_of_are_refused(name):
    def run(t):
        try:
            return getattr(t, name)(nested(t))
        except NotImplementedError as error:
            return str(error).partition(" with arguments")[0]

    agree(run)


def test_samples_of_different_dims_are_refused():
    agree(lambda t: t.nested.nested_tensor([t.ones(2, 3), t.ones(2)]))
