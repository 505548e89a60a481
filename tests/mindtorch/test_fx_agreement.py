"""torch.fx: the graphs of traced programs, their code and what they compute are torch's."""

import copy
import importlib
import operator
import pickle

import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="torch is the oracle")

LIBS = (mindtorch, torch)


def fx(lib, name=""):
    return importlib.import_module(f"{lib.__name__}.fx" + name)


def module(lib):
    nn = lib.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(3, 3)
            self.factor = nn.Parameter(lib.ones(3) * 0.5)
            self.register_buffer("shift", lib.arange(3.0))
            self.inner = nn.Sequential(nn.ReLU(), nn.Sequential(nn.Linear(3, 3)))
            for i, p in enumerate(self.parameters()):
                p.data = lib.arange(float(p.numel())).add(i).sin().reshape(p.shape)

        def forward(self, x, y: int = 2, *more, key=None, **words):
            a, b = x.split(2)
            z = lib.relu(self.first(x) + self.factor * y)
            z = self.inner(z) - self.shift
            z = z.sum(-1, keepdim=True)[..., None, 0:]
            z += 1
            w = lib.sigmoid(-z) @ z.transpose(1, 2)
            return {"w": w, "rest": (a.shape[0], 3 / (b**2 + 1))}, x.dtype

    return Net()


def numbers(value):
    if isinstance(value, dict):
        return {k: numbers(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [numbers(v) for v in value]
    if hasattr(value, "tolist"):
        return numbers(value.tolist())
    return float(f"{value:.4g}") if isinstance(value, float) else str(value)


FUNCTIONS = {
    "factories": lambda lib: (
        lambda x: (
            lib.zeros(x.shape[0]),
            lib.arange(x.size(0), device=x.device),
            lib.full((x.size(0),), 2.0),
            lib.randn(x.shape) * 0,
            lib.eye(x.size(0), dtype=x.dtype),
        )
    ),
    "methods": lambda lib: lambda x: x.sin().cos_().neg().view(-1, 1)[1:],
    "functions": lambda lib: lambda x, y: lib.where(x > 0, lib.exp(y), lib.maximum(x, y)),
    "operators": lambda lib: lambda x, y: (2 - x) * y // 3 + abs(x) ** 2 % 5,
    "comparisons": lambda lib: lambda x, y: (x >= y) & (x != 1) | ~(y < 0),
    "constants": lambda lib: lambda x: x + lib.tensor([1.0, 2.0, 3.0]),
    "lists": lambda lib: lambda x, y: lib.cat([x, y, x]).unbind()[1] * lib.stack([x, y]).sum(),
    "keywords": lambda lib: lambda x, scale=3, *, shift=1: x * scale + shift,
    "names": lambda lib: (
        lambda x: (
            lib.chunk(x[None], 2, dim=-1)[0] + lib.flatten(x, start_dim=0)[:2].clamp(max=1),
            lib.clamp(x, max=0.5) + lib.softmax(x, dim=0) * lib.max(x[None], dim=1)[0],
            lib.split(x, 2, dim=0)[0] + lib.argmax(x, dim=0) + lib.reshape(x, shape=(3, 1)),
            lib.narrow(x, dim=0, start=0, length=1) + lib.median(x, dim=0).values,
        )
    ),
    "attributes": lambda lib: lambda x: (x.T, x.shape, x.device, x.T.size(0)),
    "indices": lambda lib: lambda x: lib.arange(9.0)[(x > 0).long()],
    "einsum": lambda lib: lambda x, y: lib.einsum("i,j->ij", x, y).topk(1).values,
}
ARGUMENTS = {"functions": 2, "operators": 2, "comparisons": 2, "lists": 2, "einsum": 2}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_traced_function_has_torchs_code_and_computes_the_same(name):
    told = {}
    for lib in LIBS:
        traced = fx(lib).symbolic_trace(FUNCTIONS[name](lib))
        traced.graph.lint()
        args = [lib.tensor([1.0, -2.0, 3.0]), lib.tensor([2.0, 0.5, -1.0])]
        result = traced(*args[: ARGUMENTS.get(name, 1)])
        ops = [(n.op, n.name, len(n.users)) for n in traced.graph.nodes]
        told[lib] = ops, numbers(result) if name != "attributes" else None
        if name != "einsum":  # a row's argument that came by position is by position there too
            told[lib] += traced.code, str(traced.graph)
    assert told[mindtorch] == told[torch]


PROGRAM = """
from typing import Dict, List, Optional, Tuple
def whole(x, times=1): return x.log() * times
fx.wrap("whole")
fx.wrap("len")
def run(x: lib.Tensor, a: "str", b: Optional[int] = None, c: List[int] = [], d: Tuple[int, ...] = (),
        e: Dict[str, lib.Tensor] = {}, f: float | None = None) -> tuple[lib.Tensor, int]:
    lib._assert(x.sum() > 0, "no")
    return whole(x, times=2), len(x)
"""


def test_wrapped_functions_and_annotations_are_written_as_in_torch():
    told = {}
    for lib in LIBS:
        scope = {"lib": lib, "fx": fx(lib), "__name__": "program"}
        exec(PROGRAM, scope)
        traced = fx(lib).symbolic_trace(scope["run"])
        told[lib] = traced.code, traced.graph.eliminate_dead_code()
        assert traced(lib.ones(3), "")[1] == 3
    assert told[mindtorch] == told[torch]


def test_a_traced_module_has_torchs_code_and_computes_the_same():
    told = {}
    for lib in LIBS:
        net = module(lib)
        traced = fx(lib).symbolic_trace(net)
        x = lib.arange(12.0).reshape(4, 3).cos()
        told[lib] = traced.code, str(traced.graph), str(traced), numbers(traced(x))
        assert numbers(traced(x)) == numbers(net(x))
        assert list(traced.state_dict()) == list(net.state_dict())
    assert told[mindtorch] == told[torch]


@pytest.mark.parametrize("way", ["pickle", "deepcopy", "transformer", "interpreter"])
def test_a_graph_module_that_is_copied_or_run_otherwise_computes_the_same(way):
    net = mindtorch.nn.Sequential(mindtorch.nn.Linear(3, 2), mindtorch.nn.Tanh())
    traced = mindtorch.fx.symbolic_trace(net)
    x = mindtorch.arange(6.0).reshape(2, 3)
    expected = net(x).tolist()
    if way == "pickle":
        traced = pickle.loads(pickle.dumps(traced))
    elif way == "deepcopy":
        other = copy.deepcopy(traced)
        with mindtorch.no_grad():
            next(traced.parameters()).zero_()
        traced = other
    elif way == "transformer":
        traced = mindtorch.fx.Transformer(traced).transform()
    run = mindtorch.fx.Interpreter(traced).run if way == "interpreter" else traced
    assert run(x).tolist() == expected


@pytest.mark.parametrize("device", ["cpu", "npu"])
def test_gradients_pass_through_a_graph_module(device):
    net = mindtorch.nn.Sequential(mindtorch.nn.Linear(3, 2), mindtorch.nn.Tanh()).to(device)
    x = mindtorch.arange(6.0).reshape(2, 3).to(device)
    net(x).sum().backward()
    expected = net[0].weight.grad.tolist()
    net.zero_grad()
    mindtorch.fx.symbolic_trace(net)(x).sum().backward()
    assert net[0].weight.grad.tolist() == expected


def changed(lib):
    """A graph made by hand, then changed: code before and after."""
    graph = fx(lib).Graph()
    x = graph.placeholder("x")
    y = graph.placeholder("y", default_value=2)
    total = graph.call_function(lib.add, (x, y))
    unread = graph.call_method("sin", (total,))
    twice = graph.call_function(operator.mul, (total, total))
    graph.output((twice, {"y": [y]}))
    before = graph.python_code("self").src
    with graph.inserting_after(total):
        root = graph.call_function(lib.sqrt, (total,))
    twice.replace_input_with(total, root)
    graph.erase_node(unread)
    with graph.inserting_before(twice):
        graph.call_function(lib.exp, (x,))
    gone = graph.eliminate_dead_code()
    graph.lint()
    other = copy.deepcopy(graph)
    result = fx(lib).GraphModule({}, other, "Made")(lib.tensor([2.0]))
    nodes = [(n.name, [a.name for a in n.all_input_nodes], n.prev.name) for n in other.nodes]
    found = [n.name for n in graph.find_nodes(op="call_function", target=operator.mul)]
    return before, graph.python_code("self").src, gone, nodes, found, numbers(result)


def test_a_graph_changed_by_hand_is_torchs():
    assert changed(mindtorch) == changed(torch)


def refused(lib, what):
    tracing = fx(lib)
    graph = tracing.Graph()
    x = graph.placeholder("x")
    used = graph.call_function(lib.neg, (x,))
    graph.output(used)
    try:
        {
            "branch": lambda: tracing.symbolic_trace(lambda x: x if x.sum() > 0 else -x),
            "loop": lambda: tracing.symbolic_trace(lambda x: [v + 1 for v in x]),
            "length": lambda: tracing.symbolic_trace(lambda x: len(x)),
            "item": lambda: tracing.symbolic_trace(lambda x: x.__setitem__(0, x) or range(x)),
            "erase": lambda: graph.erase_node(x),
            "mutate": lambda: used.kwargs.update(a=1),
            "attribute": lambda: tracing.GraphModule({}, _reading(graph)),
            "argument": lambda: tracing.symbolic_trace(lambda x: x.add(object())),
        }[what]()
    except Exception as error:
        return type(error).__name__, str(error)
    return "nothing"


def _reading(graph):
    graph.get_attr("absent")
    return graph


@pytest.mark.parametrize("what", ["branch", "loop", "length", "item", "erase", "mutate",
                                  "attribute", "argument"])  # fmt: skip
def test_what_cannot_be_traced_or_done_is_refused_in_torchs_words(what):
    assert refused(mindtorch, what) == refused(torch, what)


def concrete(lib):
    tracing = fx(lib, "._symbolic_trace")
    trace = fx(lib).symbolic_trace

    def chosen(x, add=True, c=3):
        return x + c if add else x * c

    def nested(d, e):
        return d["x"] + d["y"][0] * e

    first = trace(chosen, concrete_args={"add": False})
    second = trace(chosen, concrete_args={"add": True, "c": 4})
    third = trace(nested, concrete_args={"d": {"x": tracing.PH, "y": [tracing.PH, 2]}})
    one = lib.ones(2)
    results = first(one, False), second(one, True, 4), third({"x": one, "y": [one, 2]}, 3.0)
    return [t.code for t in (first, second, third)], numbers(results)


def test_arguments_that_are_not_traced_are_torchs():
    assert concrete(mindtorch) == concrete(torch)


def replaced(lib):
    def program(x, w):
        a = lib.relu(x) + lib.relu(x * w)
        return lib.relu(a).sum() + a

    traced = fx(lib).symbolic_trace(program)
    found = fx(lib).replace_pattern(
        traced, lambda x: lib.relu(x), lambda x: lib.sigmoid(x) * lib.tanh(x)
    )
    traced.graph.lint()
    result = traced(lib.tensor([1.0, -1.0]), lib.tensor([0.5, 2.0]))
    return len(found), [m.anchor.name for m in found], traced.code, numbers(result)


def test_a_pattern_is_replaced_as_in_torch():
    assert replaced(mindtorch) == replaced(torch)


def shapes(lib):
    traced = fx(lib).symbolic_trace(lib.nn.Sequential(lib.nn.Conv2d(2, 3, 3), lib.nn.Flatten()))
    fx(lib, ".passes.shape_prop").ShapeProp(traced).propagate(lib.zeros(1, 2, 5, 5))
    metas = [n.meta["tensor_meta"] for n in traced.graph.nodes]
    return [(tuple(m.shape), tuple(m.stride), m.requires_grad) for m in metas]


def test_shapes_are_noted_as_in_torch():
    assert shapes(mindtorch) == shapes(torch)


def traced_twice(lib):
    class Leafless(fx(lib).Tracer):
        def is_leaf_module(self, m, name):
            return name.startswith("inner")

    net = module(lib)
    graph = Leafless().trace(net, {"key": None})
    names = [n.name for n in graph.nodes if n.op in ("call_module", "get_attr", "placeholder")]
    fresh = lib.nn.Sequential(net.inner)
    return names, [n.name for n in Leafless().trace(fresh).nodes]


def test_a_tracers_own_choice_of_leaves_is_torchs():
    assert traced_twice(mindtorch) == traced_twice(torch)


def test_a_graph_modules_class_is_its_own_and_takes_another_forward():
    def run(lib):
        traced = [fx(lib).symbolic_trace(lib.nn.ReLU()) for _ in range(2)]
        traced[0].__class__.forward = lambda self, x: x + 1
        told = str(type(traced[0])), type(traced[0]).__name__, traced[0]._get_name()
        return [*told, *(t(-lib.ones(1)).tolist() for t in traced)]

    ours, theirs = map(run, LIBS)
    assert ours[0].replace("mindtorch", "torch") == theirs[0]
    assert ours[1:] == theirs[1:]


def explanations(lib):
    """What is said of runs and graphs that fail, and the code of an argument that is None."""
    fx = lib.fx
    module = fx.symbolic_trace(lib.nn.Sequential(lib.nn.Linear(3, 4)))

    def said(call, *args):
        try:
            return call(*args)
        except Exception as error:
            return type(error).__name__, str(error)

    yield said(fx.Interpreter(module).run, lib.ones(2, 5))
    yield said(fx.Graph().create_node, "other", "x")
    specialized = fx.symbolic_trace(
        lambda x, n=None: x + 1 if n is None else x, concrete_args={"n": None}
    )
    yield specialized.code, said(specialized, lib.ones(1), 3)


def test_failures_are_explained_as_in_torch():
    for ours, theirs in zip(explanations(mindtorch), explanations(torch), strict=True):
        assert str(ours).replace("mindtorch", "torch") == str(theirs)


@pytest.mark.parametrize("name", ["nope", "first.nope", "factor", ""])
def test_a_call_of_a_module_that_is_not_there_is_refused(name):
    def run(lib):
        graph = fx(lib).symbolic_trace(lib.nn.Sequential(lib.nn.ReLU())).graph
        try:
            return graph.call_module(name).op
        except AttributeError as error:
            return str(error)

    assert run(mindtorch) == run(torch)


def test_operators_have_torchs_tags_and_random_nodes_stay():
    names = ("add.Tensor", "bernoulli_.float", "bernoulli.p", "native_layer_norm.default",
             "nonzero.default", "t_.default", "sum.dim_IntList", "item.default")  # fmt: skip

    def story(lib):
        graph = fx(lib).Graph()
        for name in names:
            packet, _, kind = name.partition(".")
            overload = getattr(getattr(lib.ops.aten, packet), kind)
            node = graph.call_function(overload, ())
            tags = [tag.name for tag in overload.tags]
            yield name, tags, overload._schema.is_mutable
            yield node.is_impure(), node.is_impure(impure_random=False)

    assert list(story(mindtorch)) == list(story(torch))


@pytest.mark.filterwarnings("ignore:Attempted to insert")
def test_linearized_functions_run_what_is_constant_once():
    def story(lib):
        calls = []

        def function(tree):
            calls.append(1)
            return {"p": tree["a"].sin() * tree["b"], "q": (tree["a"], tree["b"].argmax())}

        place = {"a": lib.arange(3.0), "b": lib.ones(3)}
        with pytest.warns(UserWarning, match="no underlying reference"):
            value, product = lib.func.linearize(function, place)
        yield str(value), str(product(place)), str(product({k: v * 2 for k, v in place.items()}))
        yield len(calls)
        lib.manual_seed(0)
        _, product = lib.func.linearize(lambda x: lib.dropout(x, 0.5, True), lib.ones(4))
        yield [set(product(lib.ones(4)).tolist()) <= {0.0, 2.0} for _ in range(3)]
        yield str(lib.func.linearize(lambda x: x.cos(), place["a"])[1](place["b"]))
        for tangent in (place["a"], {"a": place["a"]}, {"a": lib.ones(2), "b": place["b"]}):
            with pytest.raises(RuntimeError) as error:
                lib.func.linearize(function, place)[1](tangent)
            yield str(error.value)
        with pytest.raises(RuntimeError) as error:
            lib.func.vmap(lambda x: lib.func.linearize(lib.sin, x)[1](x))(place["a"])
        yield str(error.value)

    assert list(story(mindtorch)) == list(story(torch))


UNKNOWN = (
    lambda t, a: a.nonzero(), lambda t, a: a.nonzero(as_tuple=True), lambda t, a: a[a > 0],
    lambda t, a: t.unique(a), lambda t, a: t.unique(a, return_inverse=True),
    lambda t, a: t.unique(a, dim=0), lambda t, a: t.unique_consecutive(a),
    lambda t, a: t.argwhere(a), lambda t, a: t.masked_select(a, a > 0),
    lambda t, a: t.bincount(a.long().view(-1)), lambda t, a: t.allclose(a, a),
    lambda t, a: t.repeat_interleave(a, t.ones(3, dtype=t.long), 0),
    lambda t, a: t.repeat_interleave(a, 2, 0).shape, lambda t, a: a.sum().item(),
)  # fmt: skip


def test_fakes_refuse_what_values_say_and_hooks_get_fakes():
    def story(lib):
        fakes = importlib.import_module(f"{lib.__name__}._subclasses.fake_tensor")
        with fakes.FakeTensorMode():
            a, kinds = lib.ones(3, 4), []
            for ask in UNKNOWN:
                try:
                    yield ask(lib, a)
                except RuntimeError as error:
                    yield type(error).__name__, str(error)
            layers = lib.nn.Sequential(lib.nn.LayerNorm(4), lib.nn.Linear(4, 2), lib.nn.GELU())

            def pack(tensor):
                kinds.append(type(tensor).__name__)
                return tensor

            with lib.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
                loss = lib.nn.functional.cross_entropy(layers(a), lib.zeros(3, dtype=lib.long))
            loss.backward()
            yield set(kinds), type(layers[1].weight.grad).__name__

    assert list(story(mindtorch)) == list(story(torch))


BACKWARD = {
    "hardtanh": lambda t, x: t.nn.functional.hardtanh(x),
    "gelu_backward": lambda t, x: t.func.grad(lambda q: t.nn.functional.gelu(q).sum())(x),
    "native_layer_norm_backward": lambda t, x: t.func.grad(
        lambda q: (t.nn.functional.layer_norm(q[0], (3,), q[1], q[2]) * x).sum()
    )((x, x[0], x[1])),
}


@pytest.mark.parametrize("name", BACKWARD)
def test_operators_of_gradients_are_made_of_others(name):
    def story(lib):
        make_fx = fx(lib, ".experimental.proxy_tensor").make_fx
        decomposed = importlib.import_module(f"{lib.__name__}._decomp").get_decompositions
        x = lib.arange(6.0).reshape(2, 3)
        table = decomposed([getattr(lib.ops.aten, name)])
        traced = make_fx(lambda x: BACKWARD[name](lib, x), decomposition_table=table)(x)
        yield traced.code
        results = lib.utils._pytree.tree_leaves(traced(x + 1))
        yield [[round(v, 3) for v in r.flatten().tolist()] for r in results]

    assert list(story(mindtorch)) == list(story(torch))


def _slopes(lib, function):
    return lib.func.grad(lambda x: function(x).sum())


GRAPHS = {
    "defaults": ("real", lambda lib: _declared(lib), 2),
    "silu": ("real", lambda lib: _slopes(lib, lib.nn.functional.silu), 1),
    "mish": ("real", lambda lib: _slopes(lib, lib.nn.functional.mish), 1),
    "logit": ("real", lambda lib: _slopes(lib, lib.logit), 1),
    "clamped logit": ("real", lambda lib: _slopes(lib, lambda x: lib.logit(x, 0.1)), 1),
    "parts": ("real", lambda lib: _slopes(lib, lambda x: lib.nn.functional.layer_norm(x, (3,))), 1),
    "attention": ("fake", lambda lib: (
        lambda x: lib.nn.functional.scaled_dot_product_attention(*[x[None, None]] * 3)), 1),
    "product": ("symbolic", lambda lib: lambda x: x.view(x.shape[0] * x.shape[1]) / x.shape[0], 1),
    "sum": ("symbolic", lambda lib: lambda x: lib.zeros(x.shape[0] + 1, 3), 1),
    "number": ("symbolic", lambda lib: lambda x, n: x * n, 2),
    "inferred": ("symbolic", lambda lib: lambda x: x.sin().reshape(-1), 1),
    "mean": ("symbolic", lambda lib: _slopes(lib, lambda x: x.sum(0).view(-1).pow(2).mean()), 1),
}  # fmt: skip


def _declared(lib):
    def function(x, y: int = 2) -> "list[int]":
        return [x + y]

    return function


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_of_operators_print_as_torchs(name):
    def story(lib):
        mode, make, count = GRAPHS[name]
        function, x = make(lib), lib.linspace(0.2, 0.7, 15).reshape(5, 3)
        traced = fx(lib, ".experimental.proxy_tensor").make_fx(function, tracing_mode=mode)
        graph = traced(*(x, 4)[:count])
        yield graph.code
        if mode == "symbolic":
            x = lib.ones(7, 2)
        results = lib.utils._pytree.tree_leaves(graph(*(x, 6)[:count]))
        yield [v for r in results for v in r.flatten().tolist()]

    (code, values), (others, numbers) = story(mindtorch), story(torch)
    assert code == others
    assert values == pytest.approx(numbers, nan_ok=True)
