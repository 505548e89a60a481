"""What function modes see, and what may be done under the modes of gradients, against torch."""

import importlib

import pytest

torch = pytest.importorskip("torch")

import mindtorch  # noqa: E402 - torch first: where it is missing, the module is skipped

CALLS = """\
zeros((2,)); ones((2,)); full((2,), 1.0); empty((2,)); rand((2,)); randn((2,)); randint(3, (2,))
arange(3); linspace(0, 1, 3); logspace(0, 1, 3); eye(2); tensor([1.0]); as_tensor([1.0]); asarray([1.0])
zeros_like(x); ones_like(x); full_like(x, 1.0); rand_like(x); empty_like(x); randperm(3)
tril_indices(2, 2); scalar_tensor(1.0); complex(x, x); polar(x, x); hann_window(3); kaiser_window(3)
empty_strided((2,), (1,)); normal(x, 1.0); bernoulli(x); poisson(x); cartesian_prod(x)
meshgrid(x, indexing='ij'); einsum('i->i', x); stack([x]); cat([x]); where(x > 0, x, x); atleast_1d(x)
nn.functional.relu(x); nn.functional.mse_loss(x, x); nn.functional.softmax(x, 0); tensordot(x, x, 1)
is_tensor(x); get_num_threads(); result_type(x, x); broadcast_shapes((2,), (1,))
""".replace("\n", ";").split(";")


def seen(library, call):
    names = []

    class Mode(library.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            names.append(func)
            return func(*args, **(kwargs or {}))

    scope = {"x": library.ones(2), "library": library}
    with Mode():
        eval(f"library.{call.strip()}", scope)
    return [f.__name__ for f in names], any(f is getattr(library, f.__name__, f) for f in names)


@pytest.mark.parametrize("call", [c for c in CALLS if c.strip()])
@pytest.mark.filterwarnings("ignore")
def test_a_mode_sees_the_functions_that_it_sees_in_torch(call):
    ours, theirs = seen(mindtorch, call), seen(torch, call)
    assert ours[0][:1] == theirs[0][:1]
    assert ours[1] == theirs[1]


@pytest.mark.parametrize(
    "write",
    ["t.add_(1)", "t[0].add_(1)", "t.view(1, 2).mul_(2)", "t[:1].zero_()", 
     "t.copy_(t)", "t.unsqueeze(0).random_()", "t.clone().add_(1)", "(t + 1).add_(1)", "t.view(2)"],
)  # fmt: skip
def test_what_was_made_in_inference_mode_is_written_to_where_torch_writes(write):
    def outcome(library):
        with library.inference_mode():
            t = library.ones(2)
        try:
            return eval(write, {"t": t}).is_inference()
        except RuntimeError as error:
            return str(error)

    assert outcome(mindtorch) == outcome(torch)


@pytest.mark.parametrize("name", ["jacobian", "hessian", "vjp", "jvp", "vhp", "hvp"])
def test_derivatives_are_there_where_the_caller_records_none(name):
    def outcome(library):
        x = library.tensor([1.0, 2.0])
        vector = () if name in ("jacobian", "hessian") else (library.ones(2),)
        scalar = name in ("hessian", "vhp", "hvp")
        with library.no_grad():
            result = getattr(library.autograd.functional, name)(
                (lambda v: (v**3).sum()) if scalar else (lambda v: v**2), x, *vector
            )
        return repr(result), library.is_grad_enabled()

    assert outcome(mindtorch) == outcome(torch)


METHODS = """\
x + x; x - 1; 2 * x; x / x; x // 2; x % 2; x ** 2; x @ x; -x; abs(x); x == x; x != 1; x < 1
x > x; (x > 0) & (x > 1); x[0]; x[0, 1]; x[x > 0]; x.add(x); x.add_(1); x.sum(1); x.t(); x.clone()
x.exp(); x.masked_fill(x > 0, 0); x.softmax(-1); x.max(1); x.view(-1); x.squeeze(); add(x, x)
nn.functional.gelu(x); nn.functional.relu(x); nn.functional.linear(x, x); nn.functional.layer_norm(x, (2,))
nn.functional.pad(x, (1, 1)); linalg.inv(x); fft.fft(x); sum(x, 1); cat([x, x]); zeros_like(x)
add(x, x, out=zeros(2, 2)); max(x, 1, out=(zeros(2), zeros(2, dtype=int64))); x.double(); x.long()
nn.init.uniform_(x); nn.init.normal_(x, std=2); nn.init.constant_(x, 1); nn.init.kaiming_uniform_(x)
""".replace("\n", ";").split(";")


def _named(library, call, subclass):
    """The names that torch gives what a mode, or a class, sees of a call."""
    names = []

    def note(func, args, kwargs):
        names.append((library.overrides.resolve_name(func), len(args), sorted(kwargs or ())))

    class Mode(library.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            note(func, args, kwargs)
            return func(*args, **(kwargs or {}))

    class Seen(library.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            note(func, args, kwargs)
            return super().__torch_function__(func, types, args, kwargs or {})

    x = library.tensor([[1.0, 2.0], [3.0, 5.0]])
    call = call.strip()
    source = f"library.{call}" if call.partition("(")[0].replace(".", "a").isidentifier() else call
    source = call if call.startswith("x") else source
    scope = {"x": x.as_subclass(Seen) if subclass else x, "library": library}
    scope |= {"zeros": library.zeros, "int64": library.int64}
    if subclass:
        eval(source, scope)
    else:
        with Mode():
            eval(source, scope)
    return names


@pytest.mark.parametrize("subclass", [False, True], ids=["mode", "subclass"])
@pytest.mark.parametrize("call", [c for c in METHODS if c.strip()])
@pytest.mark.filterwarnings("ignore")
def test_methods_and_functions_are_told_apart_by_torchs_names(call, subclass):
    assert _named(mindtorch, call, subclass) == _named(torch, call, subclass)


def test_names_are_found_by_the_function_itself():
    for path in ("add", "Tensor.add", "Tensor.grad.__get__", "nn.functional.relu", "linalg.inv",
                 "nn.init.ones_", "Tensor.__getitem__", "special.erf"):  # fmt: skip
        for library in (mindtorch, torch):
            value = library
            for part in path.split("."):
                value = getattr(value, part)
            assert library.overrides.resolve_name(value) == f"torch.{path}"
    assert mindtorch.overrides.resolve_name(print) is None is torch.overrides.resolve_name(print)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4), (4,)])
def test_a_dispatch_mode_sees_the_products_of_a_layer(shape, bias):
    outcomes = []
    for library in (mindtorch, torch):
        names = []

        class Mode(library.utils._python_dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None, names=names):
                names.append(func._schema.name)
                return func(*args, **(kwargs or {}))

        x = (library.arange(24.0)[: len(shape) * 12].reshape(-1, 4) / 7)[:6].flatten()
        x = x[: mindtorch.Size(shape).numel()].reshape(shape).requires_grad_()
        w = (library.arange(20.0).reshape(5, 4) / 9).requires_grad_()
        b = library.ones(5, requires_grad=True) if bias else None
        with Mode():
            y = library.nn.functional.linear(x, w, b)
            x.to(library.float64)
        products = ("aten::addmm", "aten::mm", "aten::t")
        forward = sorted(n for n in names if n in products)
        del names[:]
        with Mode():
            (y * y).sum().backward()
        results = [t.tolist() for t in (y, x.grad, w.grad)]
        outcomes.append((forward, [n for n in names if n == "aten::mm"], results))
    assert outcomes[0][:2] == outcomes[1][:2]
    for ours, theirs in zip(outcomes[0][2], outcomes[1][2], strict=True):
        torch.testing.assert_close(torch.tensor(ours), torch.tensor(theirs))


OPERATORS = """
t.tensor([1.0]); x[0, 0].item(); x + 1; x > 0; x**2; x @ y; F.linear(x, w); F.linear(x, w, b)
t.matmul(x, w[0]); t.dot(b, b); x.to(t.float64); x.bool(); x.sum(1); x.masked_fill(x > 0, 0.0)
F.leaky_relu(x); F.smooth_l1_loss(x, x); F.binary_cross_entropy_with_logits(x, x)
x.clone().fill_(2); x[i]; x.std(); x.argmax(1); t.lerp(x, x, 0.5); F.softmax(x, -1)
1 - x; 1 - r; r.sum().sigmoid(); F.rms_norm(x, (3,)); F.rms_norm(r, (3,)); F.logsigmoid(r)
F.scaled_dot_product_attention(r[None, None], r[None, None], r[None, None], is_causal=True)
F.kl_div(x, x, reduction="batchmean"); F.poisson_nll_loss(x, x); t.outer(b, b); t.linalg.cross(x, x)
F.multi_head_attention_forward(z, z, z, 4, 2, p, p.flatten()[:12], None, None, False, 0.0, q, q[0])[0]
t.add(x, x, out=x); t.mul(x, 2, out=x); t.cat([x, x], out=t.ones(4, 3)); t.pow(2, x, out=x)
t.sum(x, 1, out=t.ones(2)); t.max(x, 1, out=(t.ones(2), i.clone()))[0]; t.div(x, x, rounding_mode="floor", out=x)
t.topk(x, 2, out=(t.ones(2, 2), t.zeros(2, 2, dtype=t.long)))[0]; t.mm(x, x.t(), out=t.ones(2, 2))
t.zeros(3, out=t.ones(3)); t.arange(3, out=t.ones(3)); t.full((3,), 2.0, out=t.ones(3))
t.where(x > 0, x, x, out=x); t.stack([x, x], out=t.ones(2, 2, 3)); t.add(x, x, out=t.ones(0))
t.var(x, 0, keepdim=True); x.isfinite(); x[x > 0]; x[:2, :2]; x[t.ones(2) > 0, i]
F.max_pool2d(x[None], 2); t.linalg.norm(x, dim=0, out=t.ones(3)); t.ops.aten.mul.out(x, x, out=x)
repr(x); t.linalg.inv(q + t.eye(4)); t.linalg.det(q); t.linalg.svd(q)[1]; t.linalg.cholesky(q + 4 * t.eye(4))
"""


@pytest.mark.parametrize("text", OPERATORS.replace("\n", ";").split(";"))
def test_a_dispatch_mode_sees_torchs_operators(text):
    def both(library):
        names = []

        class Mode(library.utils._python_dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                names.append(str(func))
                return func(*args, **(kwargs or {}))

        sizes = {"x": (2, 3), "y": (3, 5), "w": (4, 3), "b": (4,)}
        sizes |= {"z": (2, 3, 4), "p": (12, 4), "q": (4, 4)}
        scope = {"t": library, "F": library.nn.functional, "i": library.tensor([1, 0])}
        scope |= {name: library.ones(size) for name, size in sizes.items()}
        scope["r"] = library.ones((2, 3), requires_grad=True)
        with Mode():
            result = eval(text.strip() or "None", scope)
        plain = eval(text.strip() or "None", scope)
        kinds = [(str(getattr(v, "dtype", "")).rpartition(".")[2], v) for v in (result, plain)]
        return names, [(kind, getattr(v, "tolist", lambda v=v: v)()) for kind, v in kinds]

    ours, theirs = both(mindtorch), both(torch)
    assert ours[0] == theirs[0]
    assert ours[1][0] == ours[1][1]
    assert ours[1][0][0] == theirs[1][0][0]


def test_a_class_without_memory_is_asked_for_parts_of_a_factorization():
    def outcome(library):
        names = []

        class Diagonal(library.Tensor):
            @staticmethod
            def __new__(cls, values):
                sizes = (len(values), len(values))
                return library.Tensor._make_wrapper_subclass(cls, sizes, dtype=values.dtype)

            def __init__(self, values):
                self.values = values

            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                names.append(str(func))
                if func is library.ops.aten.linalg_inv_ex.default:
                    return cls(1 / args[0].values), library.zeros((), dtype=library.int32)
                full = [library.diag(a.values) if isinstance(a, cls) else a for a in args]
                return func(*full, **(kwargs or {}))

        matrix = Diagonal(library.tensor([1.0, 4.0]))
        inverse = library.linalg.inv(matrix).values.tolist()
        return inverse, library.linalg.det(matrix).item(), names

    assert outcome(mindtorch) == outcome(torch)


def step_of_training(library):
    """What both modes see of a block with attention, forward and backward."""
    seen = []

    class Operators(library.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func.overloadpacket.__name__)
            return func(*args, **(kwargs or {}))

    class Functions(library.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(library.overrides.resolve_name(func))
            return func(*args, **(kwargs or {}))

    nn = library.nn
    embedding, norm, attention = nn.Embedding(7, 4), nn.LayerNorm(4), nn.Linear(4, 12)
    out, wide = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 8), nn.GELU())

    def step():
        x = embedding(library.tensor([[1, 2, 3], [3, 4, 5]]))
        q, k, v = attention(norm(x)).chunk(3, -1)
        x = x + out(library.softmax(q @ k.transpose(-2, -1) / 2.0, -1) @ v)
        y = wide(x)
        nn.functional.mse_loss(y, library.zeros_like(y)).backward()

    with Operators():
        step()
    operators, seen[:] = list(seen), []
    with Functions():
        step()
    return operators, seen


def test_modes_see_torchs_operators_and_functions_in_a_step_of_training():
    views = {"alias", "detach", "expand", "t", "transpose", "view", "_unsafe_view"}
    # What comes of sizes instead of a tensor, a row of fewer arguments, and gradients of leaves.
    own = {"ones": "ones_like", "zeros": "zeros_like",
           "_layer_norm_backward": "native_layer_norm_backward"}  # fmt: skip
    ours, theirs = step_of_training(mindtorch), step_of_training(torch)
    computed = [own.get(n, n) for n in ours[0] if n not in views | {"clone"}]
    assert computed == [n for n in theirs[0] if n not in views]
    assert ours[1] == theirs[1]


ATTRIBUTES = """x.shape; x.T; x.grad; x.is_leaf; x.device; x.dtype; x.ndim; x.requires_grad; x.grad_fn
x.data; x.H; x.itemsize; x.nbytes; x.output_nr; x.is_meta; len(x); x.dim(); x.size(0)
x.numel(); x.stride(); x.is_contiguous(); x.element_size(); x.data_ptr(); x.storage_offset(); 1 in x
x.is_floating_point(); x.get_device(); f"{x[0, 0]:.2f}"; x.tolist(); x[0, 0].item(); x.nelement()"""


def test_function_modes_see_attributes_and_small_methods_while_they_are_on():
    def seen(library):
        class Functions(library.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                names.append((library.overrides.resolve_name(func), len(args)))
                return func(*args, **(kwargs or {}))

        x, calls = library.ones(2, 2), {}
        before = library.Tensor.shape.__get__, library.Tensor.dim
        for text in ATTRIBUTES.replace("\n", ";").split(";"):
            names = calls[text] = []
            with Functions(), Functions():
                eval(text.strip(), {"x": x})
            x.shape, len(x), x.dim()
        assert before == (library.Tensor.shape.__get__, library.Tensor.dim)
        return calls

    assert seen(mindtorch) == seen(torch)


def _seen_of_user(t, space):
    """What modes and counters see of a user's operators, with their arguments and results."""

    counters = importlib.import_module(f"{t.__name__}.utils.flop_counter")

    def scaled(x, by=2.0, *, up=False):
        return x * by + 1

    def bump(b, n):
        b.add_(n)

    scaled.__annotations__ = {"x": t.Tensor, "by": float, "up": bool, "return": t.Tensor}
    bump.__annotations__ = {"b": t.Tensor, "n": int, "return": None}
    scaled = t.library.custom_op(f"{space}::scaled", scaled, mutates_args=())
    scaled.register_autograd(lambda ctx, g: (g * 2, None, None))
    bump = t.library.custom_op(f"{space}::bump", bump, mutates_args={"b"})
    lib = t.library.Library(space, "FRAGMENT")
    for name, key in (("comp", "CompositeImplicitAutograd"), ("own", "CompositeExplicitAutograd")):
        lib.define(f"{name}(Tensor x, *, Scalar a=1) -> Tensor")
        lib.impl(name, lambda x, *, a=1: x * a, key)
    ops, x, g = getattr(t.ops, space), t.ones(2, requires_grad=True), t.ones(2)
    counters.register_flop_formula(ops.scaled)(lambda s, *_, out_shape=None, **__: 100)

    class Mode(t.utils._python_dispatch.TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.seen = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.seen.append((func.name(), args[1:], kwargs, t.is_grad_enabled()))
            return func(*args, **(kwargs or {}))

    class Ruled(Mode):
        pass

    t.library.register_torch_dispatch(
        f"{space}::scaled", Ruled, lambda mode, func, types, args, kwargs: args[0] * 100
    )
    lines = []
    for call in (
        lambda: scaled(x), lambda: scaled(x, 3.0), lambda: scaled(x, 2.0, up=True),
        lambda: bump(g, 1), lambda: ops.own(g, a=3), lambda: ops.own(g), lambda: ops.comp(g),
    ):  # fmt: skip
        for kind in (Mode, Ruled):
            with kind() as mode:
                result = call()
            values = None if result is None else result.tolist()
            lines.append([(name, *rest[1:]) for name, *rest in mode.seen if "aten" not in name])
            lines.append((values, [name for name, *_ in mode.seen]))
    with counters.FlopCounterMode(display=False) as counter:
        scaled(x)
    return lines, counter.get_total_flops()


def test_modes_and_counters_see_operators_of_users():
    assert _seen_of_user(mindtorch, "seen_of_user") == _seen_of_user(torch, "seen_of_user")


def _flops_of_convolutions(t):
    counters = importlib.import_module(f"{t.__name__}.utils.flop_counter")
    counted = []
    for name, sizes, words in (
        ("conv2d", ((2, 4, 5, 5), (6, 4, 3, 3)), {"padding": 1}),
        ("conv2d", ((2, 4, 5, 5), (6, 2, 3, 3)), {"groups": 2, "stride": 2}),
        ("conv1d", ((2, 4, 5), (3, 4, 2)), {}), ("conv3d", ((1, 2, 4, 4, 4), (3, 2, 2, 2, 2)), {}),
        ("conv_transpose2d", ((2, 4, 5, 5), (4, 3, 3, 3)), {"stride": 2}),
    ):  # fmt: skip
        for wanted in ((True, True), (False, True), (True, False)):
            x, w = (t.ones(s, requires_grad=r) for s, r in zip(sizes, wanted, strict=True))
            with counters.FlopCounterMode(display=False) as counter:
                getattr(t.nn.functional, name)(x, w, **words).sum().backward()
            counts = counter.get_flop_counts()["Global"]
            counted.append({str(operator): flops for operator, flops in counts.items()})
    return counted


def test_operations_of_convolutions_and_of_their_gradients_are_counted_as_by_torch():
    assert _flops_of_convolutions(mindtorch) == _flops_of_convolutions(torch)


# What operators torch runs for these, by name, forwards and backwards.
OPERATORS = {
    "factories": "[t.rand(2), t.randn(2), t.empty(2), t.randint(3, (2,)), t.randperm(3), t.eye(2),"
    " t.ones_like(x), t.rand_like(x), t.full_like(x, 2), x.new_zeros(2), x.new_full((2,), 3)]",
    "square": "x.square()",
    "convolution": "F.conv2d(x.view(1, 1, 4, 4), w, b).sum().backward()",
    "pool": "F.max_pool2d(x.view(1, 1, 4, 4), 2).sum().backward()",
    "layer_norm": "F.layer_norm(x, (4,), b.expand(4)).sum().backward()",
    "linear": "F.linear(x, x).exp().sum().backward()",
}


# And in torch's order, with the gradients of leaves.
IN_ORDER = (
    "m(x).sum().backward()", "m(x.view(2, 2, 4)).sum().backward()", "(x + x[0]).sum().backward()",
    "[t.zeros(2).uniform_(), t.zeros(2).normal_(0, 2), t.zeros(2).bernoulli_(0.5)]",
    "[t.ones(3).exponential_(), t.zeros(3).random_(4), t.bernoulli(x.detach())]", "F.dropout(x)",
    "t.zeros(2, 3).__setitem__(0, 1.0)", "t.zeros(3).__setitem__(t.ones(3) > 0, 2.0)", "x[x > 0]",
    "x.transpose(0, 1).reshape(-1)", "t.where(x > 0, x, 0.0)", "x.squeeze(0)", "t.nn.Linear(2, 2)",
    "t.stack([x, x]).sum().backward()", "[o.step(), o.zero_grad()]", "t.nn.BatchNorm1d(4)(x)",
    "(x.view(2, 2, 2, 2) @ x.view(2, 2, 2, 2)).transpose(1, 2).flatten(2).exp().sum().backward()",
    "(x.view(2, 2, 4) @ x).transpose(0, 1).exp().sum().backward()",
    "1 - x.detach()", "x[t.tensor([0, 1])].sum().backward()", "(x[None] @ x[None]).sum().backward()",
    "[x.argmax(), x.argsort(), x.all(0), t.diag_embed(x.detach())]", "F.elu(x).sum().backward()",
    "F.leaky_relu(x).sum().backward()", "F.scaled_dot_product_attention(*[x[None]] * 3)",
    *(f"t.inference_mode()(lambda: [{calls}])()" for calls in (
        "x.reshape(16), x.flatten(), x.chunk(2), t.where(x > 0, x, 0.0), x.expand_as(x)",
        "t.einsum('ij,kj->ik', x, x), m(x), x @ x, x @ x[0], F.conv2d(x[None, None], w)",
        "F.softmax(x, -1), F.layer_norm(x, (4,)), F.dropout(x), F.gelu(x), [v.contiguous() for v in (x, x.t())]",
        "F.scaled_dot_product_attention(x[None], x[None], x[None]), F.cosine_similarity(x, x)",
    )),
)  # fmt: skip


def _operators_seen(t, code):
    module = "torch" if t is torch else "mindtorch"
    mode = importlib.import_module(f"{module}.utils._python_dispatch").TorchDispatchMode
    names = []

    class Log(mode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            names.append(str(func))
            return func(*args, **(kwargs or {}))

    x, w, b = (t.ones(*s, requires_grad=True) for s in ((4, 4), (1, 1, 2, 2), (1,)))
    m = t.nn.Sequential(t.nn.Linear(4, 3), t.nn.ReLU(), t.nn.Linear(3, 1, bias=False))
    x.grad, o = t.ones(4, 4), t.optim.SGD([x], lr=0.1)
    with Log():
        eval(code, {"t": t, "F": t.nn.functional, "x": x, "w": w, "b": b, "m": m, "o": o})
    return names


@pytest.mark.parametrize("code", OPERATORS.values(), ids=OPERATORS)
def test_dispatch_modes_see_torchs_operators(code):
    ours, theirs = (
        sorted(n for n in _operators_seen(t, code) if n != "aten.detach.default")
        for t in (mindtorch, torch)
    )
    assert ours == theirs


@pytest.mark.parametrize("code", IN_ORDER)
def test_dispatch_modes_see_torchs_operators_in_order(code):
    assert _operators_seen(mindtorch, code) == _operators_seen(torch, code)


REFUSED = """\
library.mm(x, x); x @ x; x + library.ones(5)
library.cat([x, library.ones(2)]); x.view(5); x.sum(9); x.transpose(0, 5); library.bmm(x, x)
x.index_select(5, x[0].long()); x.add_(library.ones(9)); x.copy_(library.ones(9)); x.softmax(7)
x.expand(2, 9); library.stack([x, library.ones(2)]); x.squeeze(8); x.std(9); x.max(9); x.sort(9)
x.gather(0, x[0].long()); library.addmm(library.ones(9), x, x); x.masked_fill(library.ones(9) > 0, 1)
x.split(-1); x.permute(0); x.repeat(1); x.unfold(9, 1, 1); x.narrow(0, 9, 9)
""".replace("\n", ";").split(";")


def _class_around(library, answer):
    """A class without memory around a tensor; `answer` computes its operators."""

    class Wrapper(library.Tensor):
        @staticmethod
        def __new__(cls, x):
            return library.Tensor._make_wrapper_subclass(cls, x.shape, dtype=x.dtype)

        def __init__(self, x):
            self.inner = x

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return answer(cls, func, args, kwargs or {})

    return Wrapper


def _inner(cls, args):
    return [a.inner if isinstance(a, cls) else a for a in args]


def _asked_of_refused(library, call):
    modes = importlib.import_module(f"{library.__name__}.utils._python_dispatch")
    names = []

    class Mode(modes.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            names.append(str(func))
            return func(*args, **(kwargs or {}))

    def refuse(cls, func, args, kwargs):
        names.append(f"asked for {func}")
        raise LookupError("not here")

    wrapped = _class_around(library, refuse)
    for x in (library.ones(4, 3), wrapped(library.ones(4, 3))):
        with pytest.raises(Exception) as error, Mode():  # noqa: PT011 - what it is, is compared
            eval(call.strip(), {"x": x, "library": library})
        names.append(type(error.value).__name__)
    return names


@pytest.mark.parametrize("call", [c for c in REFUSED if c.strip()])
def test_modes_and_classes_are_asked_before_shapes_are_looked_at(call):
    assert _asked_of_refused(mindtorch, call) == _asked_of_refused(torch, call)


def _products_with_a_quantised_weight(library, call):
    names = []
    views = library.ops.aten.t.default, library.ops.aten.detach.default

    def compute(cls, func, args, kwargs):
        names.append(str(func))
        result = func(*_inner(cls, args), **kwargs)
        return cls(result) if func in views else result

    x = library.ones(2, 5, 3, requires_grad=True)
    bias = library.ones(4, requires_grad=True)
    weight = _class_around(library, compute)(library.arange(12.0).reshape(4, 3))
    functional = library.nn.functional
    result = eval(call, {"x": x, "w": weight, "b": bias, "F": functional})
    result.sum().backward()
    gradients = [None if v.grad is None else v.grad.tolist() for v in (x, bias)]
    return names, result.grad_fn.name(), result.tolist(), gradients


@pytest.mark.parametrize("call", ["F.linear(x[0], w)", "F.linear(x[0], w, b)", "F.linear(x, w)",
                                  "F.linear(x, w, b)", "x @ w.t()", "w @ x[0].t()"])  # fmt: skip
def test_products_with_a_class_are_recorded_in_parts(call):
    expected = _products_with_a_quantised_weight(torch, call)
    assert _products_with_a_quantised_weight(mindtorch, call) == expected


def _operators_of_whole_rows(library):
    names = []

    def compute(cls, func, args, kwargs):
        names.append(str(func))
        return func(*_inner(cls, args), **kwargs)

    w = _class_around(library, compute)(library.ones(2))
    results = (
        library.equal(w, w),
        library.allclose(w, w),
        int(w.argmax()),
        float(library.vdot(w, w)),
    )
    return names, results


def test_classes_see_rows_in_python_that_are_one_operator():
    assert _operators_of_whole_rows(mindtorch) == _operators_of_whole_rows(torch)
