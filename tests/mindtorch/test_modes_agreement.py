"""What function modes see, and what may be done under the modes of gradients, against torch."""

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
