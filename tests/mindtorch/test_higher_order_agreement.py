"""Control flow as functions computes, traces and refuses as torch's does."""

from importlib import import_module

import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")


def ops(lib):
    return import_module(f"{lib.__name__}._higher_order_ops")


def module(lib, forward, **members):
    made = type("Made", (lib.nn.Module,), {"forward": forward})()
    for name, member in members.items():
        setattr(made, name, member)
    return made


def programs(lib):
    """Modules of control flow by name, with arguments and sizes that may change."""
    cond, higher = lib.cond, ops(lib)
    x, xs = lib.arange(3.0), lib.arange(6.0).reshape(3, 2)
    count = lib.tensor(0)
    layers = {"a": lib.nn.Linear(3, 3), "b": lib.nn.Linear(3, 3)}
    batch = {"x": {0: lib.export.Dim("batch")}}

    def chosen(self, x):
        return cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: x.cos(), (x,))

    def by_size(self, x):
        return cond(x.shape[0] > 4, lambda x: self.a(x), lambda x: self.b(x), (x,))

    def nested(self, x):
        def inner(x):
            return cond(x[0] > 1, lambda x: x + 1, lambda x: x - 1, (x,))

        return cond(x.sum() > 0, inner, lambda x: x.cos(), (x,))

    return {
        "cond": (module(lib, chosen), (x,), None),
        "layers": (
            module(lib, lambda self, x, p: cond(p, self.a, self.b, (x,)), **layers),
            (lib.ones(2, 3), lib.tensor(True)), None,
        ),
        "size": (module(lib, by_size, **layers), (lib.ones(5, 3),), batch),
        "nested": (module(lib, nested), (x,), None),
        "containers": (
            module(lib, lambda self, x: cond(
                x.sum() > 0, lambda d: {"a": d["b"] + 1}, lambda d: {"a": d["b"] * 2}, ({"b": x},)
            )),
            (x,), None,
        ),
        "while": (
            module(lib, lambda self, i, x: higher.while_loop(
                lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (i, x)
            )),
            (count, x), None,
        ),
        "map": (
            module(lib, lambda self, xs, y: higher.map(lambda x, y: x + y, xs, y)),
            (xs, lib.ones(2)), None,
        ),
        "scan": (
            module(lib, lambda self, init, xs: higher.scan(
                lambda carry, x: (carry + x, carry.clone()), init, xs
            )),
            (lib.zeros(2), xs), None,
        ),
    }  # fmt: skip


NAMES = ("cond", "layers", "size", "nested", "containers", "while", "map", "scan")


def numbers(value):
    leaves, _ = mindtorch.utils._pytree.tree_flatten(value)
    return [leaf.tolist() for leaf in leaves]


def listing(text):
    return [line for line in str(text).splitlines() if "# " not in line and line.strip()]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_exported_control_flow_is_that_of_torch(name):
    texts = []
    for lib in (mindtorch, torch):
        lib.manual_seed(0)
        net, args, sizes = programs(lib)[name]
        program = lib.export.export(net, args, dynamic_shapes=sizes)
        results = program.module()(*args)
        assert numbers(results) == numbers(net(*args))
        texts.append((listing(program), program.module().code, numbers(results)))
    assert texts[0] == texts[1]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("size", "layers")])
def test_traced_control_flow_is_that_of_torch(name):
    texts = []
    for lib in (mindtorch, torch):
        net, args, _ = programs(lib)[name]
        make_fx = import_module(f"{lib.__name__}.fx.experimental.proxy_tensor").make_fx
        traced = make_fx(net)(*args)
        texts.append((listing(traced.print_readable(print_output=False)), numbers(traced(*args))))
    assert texts[0] == texts[1]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["cond", "while"])
def test_compiled_control_flow_is_that_of_torch(name):
    texts = []
    for lib in (mindtorch, torch):
        net, args, _ = programs(lib)[name]
        seen = []

        def backend(graph_module, inputs, seen=seen):
            seen.append(listing(graph_module.print_readable(print_output=False)))
            return graph_module

        compiled = lib.compile(net, backend=backend, fullgraph=True)
        texts.append((numbers(compiled(*args)), seen))
    assert texts[0] == texts[1]


def calls(lib):
    cond, higher, x = lib.cond, ops(lib), lib.arange(3.0)
    yes = lib.tensor(True)
    sine, cosine = lib.sin, lib.cos
    return {
        "eager": lambda: (cond(yes, sine, cosine, (x,)), cond(False, sine, cosine, (x,))),
        "while": lambda: higher.while_loop(
            lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (lib.tensor(0), x)
        ),
        "map": lambda: higher.map(lambda x, y: x + y, x.reshape(3, 1), lib.ones(1)),
        "scan": lambda: higher.scan(lambda c, x: (c + x, c * 2), lib.zeros(1), x.reshape(3, 1)),
        "back": lambda: higher.scan(
            lambda c, x: (c + x, c * 2), lib.zeros(1), x.reshape(3, 1), reverse=True
        ),
        "dim": lambda: higher.scan(
            lambda c, x: (c + x, c * 2), lib.zeros(1), x.reshape(1, 3), dim=1
        ),
        "several": lambda: cond(lib.tensor([True, False]), sine, cosine, (x,)),
        "no function": lambda: cond(yes, 3, cosine, (x,)),
        "no tuple": lambda: cond(yes, sine, cosine, x),
        "no tensor": lambda: cond(yes, sine, cosine, ("a",)),
        "no loop": lambda: higher.while_loop(sine, 3, (x,)),
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", list(calls(mindtorch)))
def test_control_flow_computes_and_refuses_as_torch(name):
    outcomes = []
    for lib in (mindtorch, torch):
        try:
            outcomes.append(str(calls(lib)[name]()))
        except Exception as error:
            outcomes.append(f"{type(error).__name__} {str(error).splitlines()[0]}")
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("branch", [
    lambda x: x, lambda x: (x + 1, x), lambda x: x.add_(1), lambda x: x if x.sum() > 0 else -x,
])  # fmt: skip
def test_branches_that_are_no_graphs_are_refused(branch):
    exc = import_module("mindtorch._dynamo.exc")
    compiled = mindtorch.compile(
        lambda x: mindtorch.cond(x.sum() > 0, branch, lambda x: x + 2, (x,)),
        backend=lambda graph_module, inputs: graph_module,
    )
    with pytest.raises(exc.UncapturedHigherOrderOpError, match="unless it is captured"):
        compiled(mindtorch.ones(2))
