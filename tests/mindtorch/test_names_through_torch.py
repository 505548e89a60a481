"""Names that libraries ask torch for: each program gives in mindtorch what it gives in torch."""

import importlib

import numpy as np
import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="torch is the oracle")


def plain(value):
    """A result as Python values, the same for both libraries."""
    if isinstance(value, torch.Tensor | mindtorch.Tensor):
        numbers = np.round(value.detach().double().tolist(), 5).tolist()
        return [str(value.dtype), list(value.shape), numbers]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value


def module(lib, name):
    return importlib.import_module(f"{lib.__name__}.{name}")


def pytrees(lib):
    tree = module(lib, "utils._pytree")
    value = {"a": [1, (2, 3)], "b": {"c": 4}}
    leaves, spec = tree.tree_flatten(value)
    again = tree.tree_unflatten([x * 2 for x in leaves], spec)
    paths = [tree.keystr(path) for path, _ in tree.tree_flatten_with_path(value)[0]]
    loaded = tree.treespec_loads(tree.treespec_dumps(spec)) == spec
    picked = tree.tree_map_only(int, lambda x: x + 1, {"x": 1, "y": "z"})
    return leaves, again, paths, loaded, picked, tree.tree_map(lambda a, b: a + b, [1, 2], [3, 4])


def custom_op(lib):
    library = module(lib, "library")
    name = f"standin_{lib.__name__}::twice"

    def twice(x: lib.Tensor, s: float = 2.0) -> lib.Tensor:
        return x.detach().clone() * s

    made = library.custom_op(name, mutates_args=())(twice)
    made.register_fake(lambda x, s=2.0: lib.empty_like(x))

    def setup(ctx, inputs, output):
        ctx.s = inputs[1]

    made.register_autograd(lambda ctx, g: (g * ctx.s, None), setup_context=setup)
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    entry = getattr(lib.ops, name.split("::")[0]).twice
    entry(x, 3.0).sum().backward()
    shape = list(entry.default(lib.empty(4, device="meta")).shape)
    schema = library.infer_schema(twice, mutates_args=())
    return x.grad, shape, schema, hasattr(lib.ops.no_such_space, "nothing")


def subclasses(lib):
    seen = []

    class Watched(lib.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    class Quiet(lib.Tensor):
        pass

    x = lib.ones(3).as_subclass(Watched)
    kinds = [type(v).__name__ for v in (x + 1, lib.cat([x, x]), x.sum())]
    y = lib.ones(2, requires_grad=True)
    (y.as_subclass(Quiet) * 3).sum().backward()
    parameter = type(lib.nn.Parameter(lib.ones(1)) * 2) is lib.Tensor
    return kinds, seen, y.grad, parameter


def modes(lib):
    seen = []

    class Watch(module(lib, "overrides").TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    with Watch():
        lib.add(ONE[lib], 1)
    lib.add(ONE[lib], 1)
    return seen


ONE = {torch: torch.ones(1), mindtorch: mindtorch.ones(1)}


def transforms(lib):
    func = module(lib, "func")
    x = lib.linspace(0, 1, 4)
    both = func.vmap(lambda a, b: a * b, in_dims=(1, None))(x.view(2, 2), lib.ones(2))
    product = func.jvp(lib.sin, (x,), (lib.ones(4),))
    return [
        func.grad(lambda v: (v.sin() * v).sum())(x),
        func.hessian(lambda v: (v**3).sum())(x),
        func.jacrev(lambda v: v.cos())(x),
        list(product),
        both,
        func.vjp(lib.sin, x)[1](lib.ones(4)),
    ]


def storages(lib):
    held = lib.UntypedStorage(bytes_of([1.0, 2.0, 3.0, 4.0]))
    part = lib.asarray(held[4:12], dtype=lib.uint8).view(lib.float32)
    view = lib.empty(0).set_(held, 1, (2,), (2,))
    buffer = lib.frombuffer(bytearray(b"\x00\x00\x80?"), dtype=lib.float32)
    return part, view, buffer, len(held), held[0:2].tolist()


def bytes_of(values):
    return list(np.array(values, "f4").tobytes())


def kinds(lib):
    x = lib.ones(2)
    return [
        isinstance(x, lib.FloatTensor), isinstance(x, lib.LongTensor),
        lib.LongTensor([1, 2]), x.type(lib.LongTensor), x.type(), x.type("torch.DoubleTensor"),
        x.to(lib.float8_e4m3fn).float(), lib.tensor([300.0]).to(lib.float8_e5m2).float(),
        lib.iinfo(lib.uint16).max, lib.finfo(lib.float8_e5m2).max,
    ]  # fmt: skip


def draws(lib):
    d = module(lib, "distributions")
    lib.manual_seed(0)
    normal = d.Normal(lib.zeros(2), lib.tensor([1.0, 2.0]))
    chosen = d.Categorical(logits=lib.tensor([0.1, 0.2, 3.0]))
    coin = d.Bernoulli(probs=lib.tensor([0.3, 0.9]))
    return [
        normal.log_prob(lib.ones(2)), normal.entropy(), normal.cdf(lib.ones(2)), normal.sample(),
        chosen.log_prob(lib.tensor(2)), chosen.entropy(), coin.log_prob(lib.ones(2)),
        d.Uniform(0.0, 2.0).log_prob(lib.tensor(1.0)), d.Laplace(0.0, 1.0).cdf(lib.tensor(0.5)),
        d.Gumbel(0.0, 1.0).log_prob(lib.tensor(0.5)), d.Cauchy(0.0, 1.0).log_prob(lib.ones(2)),
        d.OneHotCategorical(lib.tensor([0.5, 0.5])).entropy(),
        list(normal.expand((3, 2)).mean.shape),
        d.Binomial(3, lib.tensor(0.4)).log_prob(lib.tensor(2.0)),
        d.Geometric(lib.tensor(0.4)).log_prob(lib.tensor(2.0)),
        module(lib, "distributions.relaxed_bernoulli")
        .RelaxedBernoulli(lib.tensor(0.7), probs=lib.tensor(0.4))
        .log_prob(lib.tensor(0.3)),
    ]  # fmt: skip


def members(lib):
    return [
        lib.isin(lib.tensor([1, 2, 3]), lib.tensor([2, 3])), lib.isin(lib.tensor([1, 2]), 2),
        lib.take_along_dim(lib.arange(6).view(2, 3), lib.tensor([[0], [1]]), 1),
        lib.from_dlpack(lib.ones(2), copy=True), lib.asarray(np.arange(3)),
        str(lib.device("cuda", 1)), lib.device("cuda") == lib.device("cuda"),
        lib.are_deterministic_algorithms_enabled(), lib.sym_max(2, 3),
    ]  # fmt: skip


def pruned(lib):
    prune = module(lib, "nn.utils.prune")
    layer = lib.nn.Linear(3, 2)
    with lib.no_grad():
        layer.weight.copy_(lib.tensor([[1.0, -2.0, 3.0], [-4.0, 5.0, -6.0]]))
        layer.bias.copy_(lib.tensor([0.5, 7.0]))
    prune.l1_unstructured(layer, "weight", amount=2)
    first = layer.weight.detach().clone()
    prune.ln_structured(layer, "weight", amount=1, n=2, dim=1)
    second, names = layer.weight.detach().clone(), sorted(layer.state_dict())
    there = prune.is_pruned(layer)
    prune.remove(layer, "weight")
    other = lib.nn.Linear(3, 2)
    with lib.no_grad():
        other.weight.copy_(layer.weight * 0 + 2)
    pairs = [(other, "weight"), (layer, "bias")]
    prune.global_unstructured(pairs, prune.L1Unstructured, amount=1)
    return [first, second, names, there, sorted(layer.state_dict()), other.weight, layer.bias]


def refusals(lib):
    texts = []
    # torch.compile turns it off for the whole process.
    lib.distributions.Distribution.set_default_validate_args(True)
    for ask in (
        lambda: lib._check(False, lambda: "no"),
        lambda: lib._check_value(False, lambda: "no value"),
        lambda: lib.ones(1).to(lib.float8_e5m2) + lib.ones(1),
        lambda: lib.distributions.Normal(0.0, -1.0),
        lambda: lib.take_along_dim(lib.ones(2, 2), lib.tensor([0]), 1),
        lambda: lib.frombuffer(b"", dtype=lib.float32),
        lambda: lib.ones(1, device="cuda"),
    ):
        with pytest.raises(Exception) as caught:  # noqa: PT011 - both libraries' are compared
            ask()
        texts.append(caught.type.__name__)
    return texts


@pytest.mark.parametrize(
    "program",
    [
        pytrees,
        custom_op,
        subclasses,
        modes,
        transforms,
        storages,
        kinds,
        draws,
        members,
        pruned,
        refusals,
    ],
    ids=lambda program: program.__name__,
)
@pytest.mark.filterwarnings("ignore")
def test_a_program_gives_what_it_gives_in_torch(program):
    assert plain(program(mindtorch)) == plain(program(torch))
