"""Autograd does what torch's does: in place, through views, hooks, modes and errors."""

import importlib

import pytest
from agreement import agree

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def leaf(t, n=4):
    return t.arange(1.0, n + 1).requires_grad_()


@case
def inplace_rebases_history(t):
    x = leaf(t)
    y = x * 2
    y.mul_(3)
    y.sum().backward()
    return x.grad


@case
def write_through_view_reaches_the_base(t):
    x = leaf(t)
    y = x * 2
    y[1:3].mul_(10)
    y.sum().backward()
    return x.grad, y


@case
def write_to_base_reaches_views(t):
    x = leaf(t)
    y = x * 2
    v = y.view(2, 2)
    w = y[0:2]
    y.mul_(10)
    (v.sum() + (w * w).sum()).backward()
    return x.grad, v.grad_fn.name(), y.grad_fn.name()


@case
def write_through_view_of_view(t):
    x = leaf(t, 8)
    y = x * 1
    v = y.view(2, 4)[1]
    v[1:3].mul_(5)
    y.pow(2).sum().backward()
    return x.grad, v


@case
def write_to_strided_view(t):
    x = leaf(t, 6)
    y = (x * 1).view(2, 3)
    y.t()[0].add_(7)
    y.pow(2).sum().backward()
    return x.grad, y


@case
def write_of_gradient_carrying_value(t):
    x, w = leaf(t), leaf(t, 2)
    y = x * 1
    y[:2] = w
    (y * y).sum().backward()
    return x.grad, w.grad


@case
def copy_into_buffer_that_needs_no_gradient(t):
    w = leaf(t, 2)
    b = t.zeros(4)
    b[1:3] = w * 2
    (b * b).sum().backward()
    return w.grad, b.requires_grad, b.is_leaf


@case
def view_made_before_base_requires_grad(t):
    w = leaf(t)
    b = t.ones(4)
    v = b[1:3]
    b.mul_(w)
    v.sum().backward()
    return w.grad, v.requires_grad


@case
def inplace_on_leaf(t):
    leaf(t).add_(1)


@case
def inplace_on_view_of_leaf(t):
    leaf(t)[1:].add_(1)


@case
def inplace_on_view_made_without_grad(t):
    x = leaf(t) * 1
    with t.no_grad():
        v = x[1:]
    v.add_(1)


@case
def inplace_on_output_of_split(t):
    a, _ = (leaf(t) * 1).split(2)
    a.add_(1)


@case
def inplace_on_leaf_without_grad(t):
    x = leaf(t)
    with t.no_grad():
        x.add_(1)
    return x, x._version


@case
def saved_tensor_was_written_to(t):
    x = leaf(t) * 1
    y = x * x
    x.add_(1)
    y.sum().backward()


@case
def saved_output_was_written_to(t):
    y = leaf(t).exp()
    y.add_(1)
    y.sum().backward()


@case
def saved_leaf_was_written_to(t):
    x = leaf(t)
    y = x * x
    with t.no_grad():
        x.add_(1)
    y.sum().backward()


@case
def second_backward(t):
    y = (leaf(t) ** 2).sum()
    y.backward()
    y.backward()


@case
def second_backward_with_retained_graph(t):
    x = leaf(t)
    y = (x**2).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad


@case
def backward_of_non_scalar(t):
    (leaf(t) * 2).backward()


@case
def backward_of_constant(t):
    t.ones(1).backward()


@case
def backward_with_gradient(t):
    x = leaf(t)
    (x * x).backward(t.tensor([1.0, 2.0, 3.0, 4.0]))
    return x.grad


@case
def backward_with_wrong_gradient_shape(t):
    (leaf(t) * 2).backward(t.ones(3))


@case
def shared_gradient_is_not_aliased(t):
    a, b = leaf(t), leaf(t)
    (a + b).sum().backward()
    a.grad.add_(5)
    return a.grad, b.grad


@case
def root_gradient_is_not_aliased(t):
    a = leaf(t)
    g = t.ones(4)
    (a + 0).backward(g)
    a.grad.add_(5)
    return g


@case
def missing_gradient_on_one_edge(t):
    x = leaf(t)
    a, _ = (x * 2).split(2)
    a.sum().backward()
    return x.grad


@case
def diamond(t):
    x = leaf(t)
    y = x * 2
    z = y * 3 + y * y
    (z + y).sum().backward()
    return x.grad


@case
def double_backward(t):
    x = leaf(t)
    (g,) = t.autograd.grad((x**3).sum(), x, create_graph=True)
    (gg,) = t.autograd.grad((g * g).sum(), x)
    return g, gg


@case
def unused_input(t):
    x, y = leaf(t), leaf(t)
    t.autograd.grad((x * 2).sum(), [x, y])


@case
def unused_input_allowed(t):
    x, y = leaf(t), leaf(t)
    return t.autograd.grad((x * 2).sum(), [x, y], allow_unused=True)


@case
def grad_of_non_leaf_stops_there(t):
    x = leaf(t)
    y = x * 2
    found = t.autograd.grad((y * y).sum(), y)
    return found, x.grad


@case
def backward_into_chosen_inputs(t):
    x, y = leaf(t), leaf(t)
    (x * y).sum().backward(inputs=[x])
    return x.grad, y.grad


@case
def hooks_see_the_sum_and_may_replace_it(t):
    x = leaf(t)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()) or g * 10)
    (y + y * 3).sum().backward()
    return x.grad, seen


@case
def hook_on_leaf_and_removal(t):
    x = leaf(t)
    handle = x.register_hook(lambda g: g * 2)
    (x * 1).sum().backward()
    handle.remove()
    (x * 1).sum().backward()
    return x.grad


@case
def post_accumulate_hook(t):
    x = leaf(t)
    seen = []
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))
    (x * 2).sum().backward()
    return seen


@case
def retain_grad_keeps_gradients(t):
    x = leaf(t)
    y = x * 2
    y.retain_grad()
    (y * y).sum().backward()
    return y.grad, x.grad


@case
def no_grad_records_nothing(t):
    with t.no_grad():
        y = leaf(t) * 2
    return y.requires_grad, t.is_grad_enabled()


@case
def no_grad_decorates(t):
    @t.no_grad()
    def run(x):
        return x * 2, t.is_grad_enabled()

    return run(leaf(t))


@case
def set_grad_enabled_as_statement(t):
    t.set_grad_enabled(False)
    y = leaf(t) * 2
    t.set_grad_enabled(True)
    return y.requires_grad


@case
def inference_tensors_cannot_be_saved(t):
    with t.inference_mode():
        y = t.ones(4) * 2
    return y.is_inference(), (leaf(t) * y)


@case
def inference_tensors_cannot_be_written_outside(t):
    with t.inference_mode():
        y = t.ones(4) * 2
    y.add_(1)


@case
def requires_grad_of_integers(t):
    t.ones(2, dtype=t.int64).requires_grad_()


@case
def requires_grad_false_of_non_leaf(t):
    y = leaf(t) * 2
    y.requires_grad = False


@case
def detach_shares_memory_and_version(t):
    x = leaf(t) * 1
    d = x.detach()
    d.add_(1)
    return x, d.requires_grad, x._version, d._version


@case
def data_has_its_own_version(t):
    x = leaf(t) * 1
    x.data.add_(1)
    return x, x._version


@case
def gradient_of_broadcast_and_mixed_dtypes(t):
    x = t.ones(3, 1, dtype=t.float64).requires_grad_()
    y = t.ones(4).requires_grad_()
    (x * y).sum().backward()
    return x.grad, y.grad


@case
def assigning_a_gradient_of_wrong_shape(t):
    leaf(t).grad = t.ones(3)


@case
def gradient_layout_follows_the_leaf(t):
    x = t.ones(2, 3).t().requires_grad_()
    (x * t.ones(3, 2)).sum().backward()
    return x.grad


@case
def custom_function(t):
    class Square(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.save_for_backward(x)
            ctx.factor = factor
            return x * x * factor

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * ctx.factor * grad, None

    x = leaf(t)
    y = Square.apply(x, 3)
    y.sum().backward()
    return x.grad, y.grad_fn.name()


@case
def custom_function_with_wrong_count(t):
    class Bad(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, grad):
            return grad

    Bad.apply(leaf(t), leaf(t)).sum().backward()


@case
def custom_function_double_backward(t):
    class Cube(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 3 * x * x * grad

    x = leaf(t)
    (g,) = t.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    return t.autograd.grad(g.sum(), x)


@case
def custom_function_several_outputs(t):
    class Two(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_non_differentiable(n := x > 2)
            return x * 2, n

        @staticmethod
        def backward(ctx, grad, _):
            return grad * 2

    x = leaf(t)
    y, n = Two.apply(x)
    y.sum().backward()
    return x.grad, n.requires_grad


@case
def custom_function_marks_dirty(t):
    class Double(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = leaf(t)
    y = x * 1
    z = Double.apply(y)
    z.sum().backward()
    return x.grad, z is y, y._version


@case
def saved_tensor_hooks(t):
    seen = []
    x = leaf(t)
    with t.autograd.graph.saved_tensors_hooks(lambda s: seen.append(1) or s * 2, lambda s: s / 2):
        y = x * x
    y.sum().backward()
    return x.grad, len(seen)


@case
def saved_tensors_are_packed_and_read_in_torchs_order(t):
    nn, f = t.nn, t.nn.functional
    x = t.arange(24.0).reshape(2, 3, 4).div(10).requires_grad_()
    w, v = t.ones(5, 4, requires_grad=True), t.ones(4, requires_grad=True)
    m = t.tensor([[1.0, 2.0], [0.5, -1.0]], requires_grad=True)
    calls = [
        lambda: x * w[0], lambda: x / w[0], lambda: x**v, lambda: x[0] @ w.t(), lambda: x @ w.t(),
        lambda: x @ x.transpose(1, 2), lambda: x[None] @ x[None].transpose(2, 3), lambda: x @ v,
        lambda: f.linear(x, w), lambda: f.linear(x, w, t.ones(5)), lambda: x.lerp(v, x),
        lambda: f.layer_norm(x, (4,), v, v * 2), lambda: t.linalg.svdvals(m), lambda: x.hypot(v),
        lambda: t.addcmul(x, v, x), lambda: f.conv1d(x, t.ones(2, 3, 2, requires_grad=True)),
        lambda: f.linear(x.detach(), w), lambda: f.rms_norm(x, (4,), v), lambda: f.cross_entropy(x[0], t.arange(3)),
    ]  # fmt: skip
    log = []

    def seen(word):
        return lambda tensor: (
            log.append((word, tuple(tensor.shape), round(float(tensor.sum()), 3))) or tensor
        )

    for call in calls:
        with t.autograd.graph.saved_tensors_hooks(seen("pack"), seen("unpack")):
            result = call()
        result.sum().backward()
    with t.autograd.graph.saved_tensors_hooks(lambda s: s.clone(), lambda s: s):
        y = nn.functional.linear(x, w).tanh().sum()
    (g,) = t.autograd.grad(y, x, create_graph=True)
    g.pow(2).sum().backward()
    return log, x.grad, w.grad


@case
def checkpointed_function(t):
    from importlib import import_module

    checkpoint = import_module(t.__name__ + ".utils.checkpoint").checkpoint
    x = leaf(t)
    y = checkpoint(lambda v: (v * v).relu() * v, x, use_reentrant=False)
    y.sum().backward()
    return x.grad


@case
def deep_graphs_do_not_overflow(t):
    x = leaf(t, 1)
    y = x
    for _ in range(5000):
        y = y + 1
    y.backward()
    return x.grad


@case
def leaf_that_is_gone(t):
    seen = []

    def make():
        x = leaf(t)
        x.register_hook(lambda g: seen.append(g.tolist()))
        return (x * 2).sum()

    make().backward()
    return seen


@case
def pow_of_view_in_place_then_read_through_sibling(t):
    x = leaf(t, 6)
    y = x * 1
    a, b = y[:4], y[2:]
    a.mul_(2)
    b.mul_(3)
    (a * b).sum().backward()
    return x.grad, y, a, b


@case
def zero_grad_by_none(t):
    x = leaf(t)
    (x * 2).sum().backward()
    x.grad = None
    (x * 3).sum().backward()
    return x.grad


@case
def parts_of_an_expanded_tensor(t):
    x = leaf(t).view(4, 1)
    y = x.expand(4, 3)
    z = x.view(1, 4).expand(3, 4)
    return t.autograd.grad(y[1].sum() + y[:, 1].sum(), y), t.autograd.grad(z[2, 1:].sum(), z)


@case
def parts_of_a_transposed_tensor(t):
    x = leaf(t, 6).view(2, 3).t()
    found = t.autograd.grad(x[1].sum() + x[:, 0].sum() + x.diagonal().sum(), x)
    return found


@case
def jacobians_and_hessians(t):
    f = t.autograd.functional
    x, y = t.arange(1.0, 4.0), t.arange(2.0, 5.0)
    one = f.jacobian(lambda a: a * a * 2, x)
    two = f.jacobian(lambda a, b: (a * b, (a + b).sum()), (x, y))
    three = f.hessian(lambda a: (a**3).sum(), x)
    four = f.hessian(lambda a, b: (a * a * b).sum(), (x, y))
    five = f.vjp(lambda a: a * a, x, t.ones(3))
    six = f.hvp(lambda a: (a**3).sum(), x, t.ones(3))
    return one, two, three, four, five, six


@case
def gradcheck_accepts_and_refuses(t):
    x = t.tensor([0.5, -1.5], dtype=t.float64, requires_grad=True)
    good = t.autograd.gradcheck(lambda a: (a * a).sum() + a.exp(), (x,))

    class Wrong(t.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a * a

        @staticmethod
        def backward(ctx, grad):
            return grad * 3

    bad = t.autograd.gradcheck(Wrong.apply, (x,), raise_exception=False)
    second = t.autograd.gradgradcheck(lambda a: a**3, (x,))
    return good, bad, second


@case
def is_leaf_and_grad_fn(t):
    x = leaf(t)
    return x.is_leaf, x.grad_fn, (x * 1).is_leaf, t.ones(1).is_leaf, x.detach().is_leaf


@case
def detach_in_place(t):
    y = leaf(t) * 2
    y.detach_()
    return y.requires_grad, y.is_leaf


@case
def fill_and_zero_in_place(t):
    x = leaf(t)
    y = x * 2
    y[:2].zero_()
    y[3:].fill_(9.0)
    y.sum().backward()
    return x.grad, y


@case
def a_changed_value_is_pointed_at_by_the_trace(t):
    y = leaf(t) * 2
    with t.autograd.set_detect_anomaly(True):
        z = (y * y).sum()
        y.mul_(2)
        with pytest.warns(UserWarning, match="Error detected"):
            z.backward()


@case
def hooks_after_accumulation_may_give_their_tensor(t):
    x = leaf(t)
    x.register_post_accumulate_grad_hook(lambda p: p)
    x.sum().backward()
    return x.grad


@case
def hooks_after_accumulation_give_nothing_else(t):
    x = leaf(t)
    x.register_post_accumulate_grad_hook(lambda p: "a")
    x.sum().backward()


def scaled(t):
    class Scaled(t.autograd.Function):
        @staticmethod
        def forward(x, k=2):
            return x * k

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.k = inputs[1]

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.k, None

    return Scaled


@case
def a_function_is_called_by_keywords(t):
    x = leaf(t)
    y = scaled(t).apply(x, k=3) * scaled(t).apply(x)
    y.sum().backward()
    return y, x.grad


@case
def a_function_refuses_keywords_it_has_not(t):
    return scaled(t).apply(leaf(t), z=3)


@case
def hooks_of_leaves_run_in_torchs_order(t):
    order, nodes = [], []
    layer = t.nn.Linear(2, 2)
    x = t.ones(3, 2).requires_grad_()
    for name, leaf in [("x", x), *layer.named_parameters()]:
        leaf.register_post_accumulate_grad_hook(lambda p, n=name: order.append(n))
        node = leaf.view_as(leaf).grad_fn.next_functions[0][0]
        nodes.append(node)
        node.register_hook(lambda gi, go, n=name: order.append((n, len(gi), len(go))))
        node.register_prehook(lambda go, n=name: order.append((n, "before")))
    loss = (layer(x) * t.ones(3, 2)).sum()
    loss.backward(inputs=[layer.weight], retain_graph=True)
    loss.backward()
    (x * layer.weight[0]).sum().backward()
    return order


@case
def gradients_of_inputs_are_kept(t):
    x = leaf(t)
    y = x * 2
    y.sum().backward(inputs=[y, x])
    return y.retains_grad, y.grad, x.grad


@case
def inputs_are_tensors(t):
    leaf(t).sum().backward(inputs="a")


@case
def batched_weights_have_a_shape(t):
    x = leaf(t)
    return t.autograd.grad(x * 2, x, t.ones(2, 5), is_grads_batched=True)


@case
def batched_weights_are_there(t):
    x = leaf(t)
    return t.autograd.grad(x * 2, x, is_grads_batched=True)


@case
def a_gradient_is_on_its_device(t):
    leaf(t).grad = t.ones(4, device="meta")


@case
def names_on_a_node_are_a_programs(t):
    class Labelled(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, label):
            ctx.label, ctx.saved, ctx.edges, ctx.name = label, x.shape, [1], "mine"
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            seen.append((ctx.label, tuple(ctx.saved), ctx.edges, ctx.name, ctx.saved_tensors))
            return grad, None

    seen, x = [], leaf(t)
    y = Labelled.apply(x, "a")
    y.sum().backward()
    return seen, y.grad_fn.label, len(y.grad_fn.next_functions), type(y.grad_fn).__name__, x.grad


def returning(t, value):
    class Returning(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return value(grad)

    Returning.apply(leaf(t)).sum().backward()


@case
def gradients_come_in_a_tuple(t):
    returning(t, lambda grad: [grad])


@case
def gradients_stay_on_the_device(t):
    returning(t, lambda grad: grad.to("meta"))


@case
def gradients_of_real_numbers_are_real(t):
    returning(t, lambda grad: grad * 1j)


@case
def backward_and_vjp_are_two_names_for_one(t):
    class Both(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def vjp(ctx, grad):
            return grad * 3

    x = leaf(t)
    Both.apply(x).sum().backward()
    Both.backward = staticmethod(lambda ctx, grad: grad)
    return x.grad, Both.apply(x).sum().backward()


def sparse_sum(t, *lists):
    one, other = (
        t.sparse_coo_tensor([k], t.arange(1.0, len(k) + 1), (5,), check_invariants=False)
        for k in lists
    )
    return [(s.is_coalesced(), s._indices().tolist(), s._values()) for s in (one, one + other)]


def embedded(t):
    weight = t.ones(6, 2).requires_grad_()
    a, b = (t.nn.functional.embedding(t.tensor(k), weight, sparse=True) for k in ([1, 4], [4, 2]))
    (a * b).sum().backward()
    (a.sum() + b.sum()).backward()
    return weight.grad._indices(), weight.grad._values()


ROWS = """
jacobian(lambda a: (a, 3), x)
jacobian(lambda a, b: a * 2, (x, x), strict=True)
jacobian(lambda a: a * 2, x, strict=True, create_graph=True)
hessian(lambda a: (a, a), x)
hessian(lambda a: a.sum(), x, strict=True)
hessian(lambda a: (a**3).sum(), x, outer_jacobian_strategy="forward-mode")
hessian(lambda a: (a**3).sum(), x, outer_jacobian_strategy="sideways")
hessian(lambda a: t.ones(1), x)
vjp(lambda a: a * 2, x, 3)
vjp(lambda a, b: a * 2, (x, x), x, strict=True)
jvp(lambda a: a * 2, x, x, strict=True, create_graph=True)
vhp(lambda a: (a * 2).sum(), x, x, strict=True)
vhp(lambda a: (a**2).sum(), x, x, strict=True, create_graph=True)
hvp(lambda a, b: (a**2).sum() * b.prod(), (x, x), (x, x), strict=True)
gradcheck(lambda a: 3, d)
gradcheck(t.exp, d, foo=1)
gradcheck(t.exp, d, check_backward_ad=False)
gradcheck(t.exp, d, check_batched_forward_grad=True)
gradcheck(t.exp, d[:1].expand(3))
gradcheck(lambda a: a.to_sparse(), d)
gradcheck(Noisy.apply, d)
gradcheck(Noisy.apply, d, raise_exception=False)
[importlib.import_module(t.__name__ + ".autograd.gradcheck") and 1, t.autograd.gradcheck(t.exp, d)]
d.exp().grad_fn()
[n for n in dir(d.exp().grad_fn) if n[:2] != "__"]
t.autograd.graph.register_multi_grad_hook((x,), print)
hooks(3, 4).__enter__()
texts_of_saved(lambda a: a.exp() * a)
mutable().__enter__()
[t.autograd.Variable(x * d[0], True), t.autograd.Variable(x, volatile=1), isinstance(x, t.autograd.Variable)]
t.autograd.Variable([1.0])
t.autograd.Variable(x.int(), requires_grad=True)
t.autograd.variable(x)
[t.autograd.grad(f(d), d, create_graph=True)[0].grad_fn.name() for f in (t.norm, lambda d: d.square().sum())]
[sparse_sum(t, a, b) for a in ([1, 2], [2, 1, 1], [1], []) for b in ([1], [1, 2], [3, 1])]
embedded(t)
make_dual(x, make_dual(x, x))
make_dual(x, 3)
t.utils.checkpoint.detach_variable(x)
t.utils.checkpoint.checkpoint_sequential([t.nn.Tanh()], 2, d, use_reentrant=False)
""".strip().splitlines()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("row", ROWS)
def test_functions_of_functions_agree_with_torch(row):
    def run(t):
        class Noisy(t.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.exp()

            @staticmethod
            def backward(ctx, grad):
                return t.rand_like(grad)

        def texts_of_saved(f):
            texts = []
            with t.autograd.graph.saved_tensors_hooks(lambda s: texts.append(repr(s)), lambda s: s):
                f(leaf(t))
            return texts

        for module in ("autograd.forward_ad", "autograd.functional", "utils.checkpoint"):
            importlib.import_module(f"{t.__name__}.{module}")
        functional = t.autograd.functional
        d = t.tensor([0.5, 2, 3], dtype=t.float64, requires_grad=True)
        names = vars(functional)
        graph, dual = t.autograd.graph, t.autograd.forward_ad
        with dual.dual_level(), graph.allow_mutation_on_saved_tensors():
            return eval(row, {**globals(), **names, "t": t, "x": t.ones(2), "d": d, "Noisy": Noisy,
                "gradcheck": t.autograd.gradcheck, "hooks": graph.saved_tensors_hooks,
                "mutable": graph.allow_mutation_on_saved_tensors, "make_dual": dual.make_dual,
                "texts_of_saved": texts_of_saved})  # fmt: skip

    agree(run)


@pytest.mark.parametrize("name", CASES)
def test_autograd_agrees_with_torch(name):
    agree(CASES[name])
