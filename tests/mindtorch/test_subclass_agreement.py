"""Subclasses of Tensor, and functions that users write: what they see and give, as in torch."""

import contextlib
import copy
import importlib

import pytest

import mindtorch
from tests.mindtorch.agreement import agree

torch = pytest.importorskip("torch", reason="torch 2.13 is the reference")

# Methods that no row makes, with arguments: what they give, and who is asked.
CALLS = {
    "to": ("float64",), "double": (), "contiguous": (), "clone": (), "detach": (),
    "new_zeros": ((2,),), "new_tensor": ([1.0],), "requires_grad_": (), "unique": (), "cpu": (),
    "type": ("int32",), "tolist": (), "size": (), "stride": (), "dim": (), "numel": (),
    "split": (1,), "is_contiguous": (), "is_floating_point": (), "numpy": (), "element_size": (),
}  # fmt: skip


def subclass(lib, seen):
    class Watched(lib.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    return lib.arange(4.0).reshape(2, 2).as_subclass(Watched)


@pytest.mark.parametrize("name", CALLS)
def test_a_method_asks_the_class_and_gives_its_kind(name):
    def call(lib, arguments):
        seen = []
        x = subclass(lib, seen)
        result = getattr(x, name)(*(getattr(lib, str(a), a) for a in arguments))
        first = result[0] if isinstance(result, tuple) and name == "split" else result
        return type(first).__name__, seen

    theirs, ours = call(torch, CALLS[name]), call(mindtorch, CALLS[name])
    assert ours == theirs


@pytest.mark.parametrize("name", ["T", "mT", "data", "real", "grad"])
def test_a_property_that_is_a_tensor_is_of_the_class(name):
    def kind(lib):
        x = subclass(lib, [])
        if name == "grad":
            x = x.clone().requires_grad_()
            (x * 2).sum().backward()
        return type(getattr(x, name)).__name__

    assert kind(mindtorch) == kind(torch)


def test_a_subclass_calls_the_method_that_it_replaces():
    class Own(mindtorch.Tensor):
        def to(self, *args):
            return super().to(*args).mul(2)

    x = mindtorch.ones(2).as_subclass(Own).to(mindtorch.float64)
    assert type(x) is Own
    assert x.tolist() == [2, 2]


def test_what_is_differentiable_once_says_so_when_it_is_differentiated_twice():
    def twice(lib):
        written = importlib.import_module(lib.__name__ + ".autograd.function")

        class Product(written.Function):
            @staticmethod
            def forward(ctx, x, y):
                ctx.save_for_backward(x, y)
                return x * y

            @staticmethod
            @written.once_differentiable
            def backward(ctx, grad):
                x, y = ctx.saved_tensors
                return grad * y, grad * x

        x, y = (lib.tensor(v, requires_grad=True) for v in ([2.0, 3.0], [4.0, 5.0]))
        (slope,) = lib.autograd.grad((Product.apply(x, y) ** 2).sum(), x, create_graph=True)
        assert slope.tolist() == [64, 150]
        slope.sum().backward()

    agree(twice)


def test_a_hook_after_accumulation_returns_nothing():
    def hooked(lib):
        x = lib.ones(2, requires_grad=True)
        x.register_post_accumulate_grad_hook(lambda p: p.data)
        x.sum().backward()

    agree(hooked)


def test_where_leaves_end_is_named_as_in_torch():
    agree(lambda lib: (lib.ones(1, requires_grad=True) * 2).grad_fn.next_functions[0][0].name())


@pytest.mark.parametrize("name", ["max", "where", "clamp", "sum", "stack", "einsum"])
def test_a_class_that_is_no_tensor_is_handed_torchs_own_function(name):
    def run(lib):
        seen = []

        class Value:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                seen.append((func is getattr(lib, name), len(args), types == (Value,)))
                return "answered"

        v = Value()
        calls = {"max": (v, v), "where": (v, v, v), "clamp": (v, 0, 1), "sum": (v,),
                 "stack": ([v, v],), "einsum": ("i,j", v, v)}  # fmt: skip
        return getattr(lib, name)(*calls[name]), seen

    agree(run)


@pytest.mark.parametrize("name", ["dropout", "interpolate", "cross_entropy", "normalize", "topk"])
def test_a_function_written_in_python_is_handed_over_whole(name):
    def run(lib):
        class Value:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return func.__name__

        v = Value()
        calls = {"dropout": (v,), "interpolate": (v, 3), "cross_entropy": (v, v),
                 "normalize": (v,), "topk": (v, 2)}  # fmt: skip
        home = lib if name == "topk" else lib.nn.functional
        return getattr(home, name)(*calls[name])

    agree(run)


PYTHONS = {
    "dropout": lambda lib, v: lib.nn.functional.dropout(v, 0.1, True),
    "relu": lambda lib, v: lib.nn.functional.relu(v, inplace=True),
    "softmax": lambda lib, v: lib.nn.functional.softmax(v, 1),
    "batch_norm": lambda lib, v: lib.nn.functional.batch_norm(v, v, v, training=True),
    "interpolate": lambda lib, v: lib.nn.functional.interpolate(v, scale_factor=2),
    "embedding": lambda lib, v: lib.nn.functional.embedding(v, v),
    "max_pool2d": lambda lib, v: lib.nn.functional.max_pool2d(v, 2),
    "linear": lambda lib, v: lib.nn.functional.linear(v, v),
    "gelu": lambda lib, v: lib.nn.functional.gelu(v),
    "meshgrid": lambda lib, v: lib.meshgrid(v, v, indexing="ij"),
    "unique": lambda lib, v: lib.unique(v),
}


@pytest.mark.parametrize("name", PYTHONS)
def test_functions_that_torch_has_in_python_hand_on_defaults_by_name(name):
    def run(lib):
        class Value:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return func.__name__, len(args), {k: str(v) for k, v in (kwargs or {}).items()}

        return PYTHONS[name](lib, Value())

    agree(run)


def test_a_parameters_subclass_takes_arguments_of_its_own():
    def run(lib):
        class Scaled(lib.nn.Parameter):
            def __new__(cls, data, scale=1.0, requires_grad=True):
                made = lib.Tensor._make_subclass(cls, data, requires_grad)
                made.scale = scale
                return made

        p = Scaled(lib.ones(2), scale=3.0)
        (p * p.scale).sum().backward()
        return p.scale, p.grad, isinstance(p, lib.nn.Parameter)

    agree(run)


LAYERS = {
    "relu": ("x",), "threshold": ("x", 0.1, 20.0), "softmax": ("x", -1), "log_softmax": ("x", 0),
    "kl_div": ("x", "x"), "batch_norm": ("x", None, None, None, None, True), "conv1d": ("x", "x"),
    "hinge_embedding_loss": ("x", "x"), "gelu": ("x",), "margin_ranking_loss": ("x", "x", "x"),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_a_layers_function_is_handed_over_itself_and_takes_what_is_handed_on(name):
    def call(lib):
        functional, seen = lib.nn.functional, []

        class Stranger:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                tensors = [x if isinstance(a, Stranger) else a for a in args]
                seen.append((func is getattr(functional, name), sorted(kwargs or {})))
                return func(*tensors, **(kwargs or {}))

        x = lib.arange(4.0).reshape(1, 2, 2) - 1
        words = [Stranger() if a == "x" else a for a in LAYERS[name]]
        result = getattr(functional, name)(*words)
        return seen, result.flatten().tolist()

    ours, theirs = call(mindtorch), call(torch)
    assert ours[0] == theirs[0]
    assert ours[1] == pytest.approx(theirs[1], nan_ok=True)


# What a program reads, sets or does, and who is asked with which keyword arguments.
EXPRESSIONS = (
    "x.shape, x.dtype, x.device, x.ndim, x.requires_grad, x.grad_fn, x.is_leaf, x.grad, x.data",
    "x.backward()", "repr(x)", "x.__setitem__(0, 1)", "x + 1", "len(x)", "x.sum(0)", "x == x",
    "bool(x[0, 0])", "float(x[0, 0])", "setattr(x, 'requires_grad', True)", "setattr(x, 'tag', 1)",
    "setattr(x, 'grad', x.detach())", "copy.deepcopy(x)", "torch.Tensor._make_subclass(int, x)",
    "x.as_subclass(int)", "x.as_subclass(3)",
)  # fmt: skip


@pytest.mark.parametrize("code", EXPRESSIONS)
def test_attributes_and_operators_ask_the_class_alike(code):
    def seen_by(lib):
        calls = []

        class Watched(lib.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                calls.append((func.__name__, len(args), sorted(kwargs) if kwargs else kwargs))
                return super().__torch_function__(func, types, args, kwargs or {})

        x = lib.ones(2, 2).as_subclass(Watched)
        try:
            eval(code, {"x": x, "copy": copy, "torch": lib})
        except Exception as error:
            calls.append(f"{type(error).__name__}: {error}")
        return calls

    assert seen_by(mindtorch) == seen_by(torch)


GIVEN = """
x.sum(dim=1); x.sum(1); x.sum((0, 1), keepdim=True); t.sum(input=x, dim=1); x.sum(axis=0); x.max(dim=1)
x.view(2, 2); x.view((2, 2)); x.view(size=(4,)); x.expand(size=(3, 2, 2)); x.permute(1, 0); x.squeeze()
x.squeeze(dim=0); t.cat([x, x], dim=1); t.cat([x, x], 1); t.stack((x, x), dim=1); x.softmax(dim=-1)
x.add(x, alpha=2); x.clamp(min=0); t.clamp(x, max=5); x.transpose(dim0=0, dim1=1); x.flatten(start_dim=0)
x.topk(k=1, dim=1, largest=False); x.std(dim=0, unbiased=False); t.pow(x, exponent=2); x.repeat([2, 1])
t.split(x, 2, dim=1); x.norm(p=2, dim=1); x.unique(); t.norm(x); t.tensordot(x, x, dims=2); 1 - x; 2 / x
2 // x; 2 % x; 2**x; x // 2; ~(x > 1); -x; x.exp(); x.zero_(); x.dim(); x.numel(); x.uniform_(0, 1)
x.normal_(std=2.0); x.new_zeros(2); x.new_full((2,), 1.0); x.mT; x.type_as(x); x.apply_(abs)
t.autograd.grad(x.requires_grad_().sum(), x); t.autograd.backward(x.requires_grad_().sum())
t.nn.functional.mse_loss(x, p); t.nn.functional.embedding(t.tensor([0, 1]), x); float(x.sum())
t.functional.einsum("ij,kj->ik", x, x); list(map(t.relu, [x])); x.detach()
""".replace("\n", ";").split(";")  # fmt: skip


@pytest.mark.parametrize("kind", ["mode", "class", "other"])
@pytest.mark.parametrize("call", [c.strip() for c in GIVEN if c.strip()])
@pytest.mark.filterwarnings("ignore")
def test_who_is_asked_has_the_arguments_as_the_program_gave_them(call, kind):
    def asked(library):
        seen = []

        def shown(value):
            if isinstance(value, list | tuple):
                return type(value).__name__, [shown(v) for v in value]
            special = isinstance(value, library.Tensor | Other)
            return type(value).__name__ if special else str(value)

        def note(func, types, args, kwargs):
            names = None if kwargs is None else {k: shown(v) for k, v in kwargs.items()}
            name = library.overrides.resolve_name(func) or func.__name__
            seen.append((name, [t.__name__ for t in types], shown(list(args)), names))

        class Mode(library.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                note(func, types, args, kwargs)
                return func(*args, **(kwargs or {}))

        class Kind(library.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                note(func, types, args, kwargs)
                return super().__torch_function__(func, types, args, kwargs or {})

        class Other:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                note(func, types, args, kwargs)

        plain = library.arange(4.0).reshape(2, 2)
        x = {"mode": plain, "class": plain.clone().as_subclass(Kind), "other": Other()}[kind]
        seen.clear()
        scope = {"x": x, "t": library, "p": plain}
        try:
            with Mode() if kind == "mode" else contextlib.nullcontext():
                exec(call, scope)
        except (AttributeError, TypeError):
            seen.append("refused")
        return seen

    assert asked(mindtorch) == asked(torch)


ALIKE = """
F.max_pool1d(x, 2); F.avg_pool1d(x, 2); F.lp_pool1d(x, 2.0, 2); t.block_diag(x[:2], x[2:]); F.elu(x)
F.max_unpool1d(*F.max_pool1d(x, 2, return_indices=True), 2); x.clone().pow_(2); F.leaky_relu(x)
F.multi_margin_loss(x, i, reduction="sum"); F.linear_cross_entropy(x, x.detach(), i); t.cdist(x, x + 1)
x * t.stack(t.unravel_index(i, (2, 2)))[:, :1].sum(); t.stack(x.split(2)); t.stack(x.unbind())
""".replace("\n", ";").split(";")


@pytest.mark.parametrize("code", [c.strip() for c in ALIKE if c.strip()])
def test_what_modes_let_pass_is_what_is_without_them(code):
    module = importlib.import_module("mindtorch.utils._python_dispatch")

    class Passing(module.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    def outcome():
        t = mindtorch
        x = t.arange(16.0).reshape(4, 4).sin().requires_grad_()
        scope = {"t": t, "F": t.nn.functional, "x": x, "i": t.tensor([0, 1, 2, 3])}
        result = eval(code, scope)
        result.sum().backward()
        return result.tolist(), x.grad.tolist()

    plain = outcome()
    with Passing():
        seen = outcome()
    assert seen == plain


ASKED = (
    "is_conj(x)", "is_neg(x)", "is_complex(x)", "is_floating_point(x)", "numel(x)", "detach(x)",
    "is_distributed(x)", "is_inference(x)", "is_signed(x)", "poisson(x)", "bernoulli(x)",
    "is_nonzero(x[0, 0])", "is_same_size(x, y)", "is_same_size(y, x)", "binomial(x, x)",
    "multinomial(x, 2)", "normal(x, x)",
)  # fmt: skip


@pytest.mark.parametrize("call", ASKED)
def test_a_class_is_asked_for_functions_written_by_hand(call):
    def first_seen(lib):
        seen = []

        class Kind(lib.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                seen.append((func.__name__, len(args), kwargs))
                return super().__torch_function__(func, types, args, kwargs or {})

        x = lib.ones(2, 2).as_subclass(Kind)
        result = eval(f"lib.{call}", {"lib": lib, "x": x, "y": lib.ones(2, 2)})
        return type(result).__name__, seen[-1][:2], seen[-1][2] or {}

    assert first_seen(mindtorch) == first_seen(torch)
