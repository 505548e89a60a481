"""torch.compile hands the graph of a call to a function, and runs what that gives."""

from importlib import import_module

import pytest

import mindtorch as mt

torch = pytest.importorskip("torch", reason="torch is the oracle of what is read")


def recording(graphs):
    def backend(module, example_inputs):
        operators = [n.op for n in module.graph.nodes]
        inputs = [tuple(x.shape) if isinstance(x, mt.Tensor) else repr(x) for x in example_inputs]
        graphs.append((operators, inputs))
        return module.forward

    return backend


def test_a_backend_gets_the_graph_once_for_each_of_two_shapes():
    graphs = []
    run = mt.compile(lambda x: (x * 2).cos().sum(0), backend=recording(graphs))
    assert run(mt.zeros(2, 3)).tolist() == run(mt.zeros(2, 3)).tolist() == [2, 2, 2]
    assert run(mt.zeros(4, 3)).tolist() == [4, 4, 4]
    assert run(mt.zeros(5, 3)).tolist() == [5, 5, 5]
    operators = ["placeholder", "call_function", "call_method", "call_method", "output"]
    assert graphs == [(operators, [(2, 3)]), (["placeholder", *operators], ["s77", (4, 3)])]


def test_a_backend_decides_what_runs():
    run = mt.compile(lambda x: x + 1, backend=lambda module, inputs: lambda x: (x * 10,))
    assert run(mt.ones(2)).tolist() == [10, 10]


def test_modules_train_through_a_backend():
    graphs = []
    model = mt.nn.Sequential(mt.nn.Linear(3, 2), mt.nn.ReLU(), mt.nn.Linear(2, 1))
    compiled = mt.compile(model, backend=recording(graphs))
    x = mt.arange(6.0).reshape(2, 3)
    assert compiled(x).tolist() == model(x).tolist()
    compiled(x).sum().backward()
    assert len(graphs) == 1
    assert model[0].weight.grad is not None
    assert next(iter(compiled.state_dict())) == "_orig_mod.0.weight"


def test_results_keep_their_structure():
    def split(a, b=2, *, named=None):
        return {"sum": a + b, "pair": (a, [a * 2])}

    result = mt.compile(split, backend=recording([]))(mt.ones(2), b=3)
    assert result["sum"].tolist() == [4, 4]
    assert result["pair"][1][0].tolist() == [2, 2]


@pytest.mark.parametrize("value", [1.0, -1.0])
def test_code_that_asks_for_values_runs_eagerly(value):
    @mt.compile(backend=recording([]))
    def branch(x):
        return x + 1 if x.sum() > 0 else x - 1

    assert branch(mt.full((2,), value)).tolist() == [value * 2] * 2


READS = {
    "item": lambda b: b.item(), "float": float, "int": int, "bool": bool,
    "tolist": lambda b: b.tolist(),
    "numpy": lambda b: float(b.numpy()), "compared": lambda b: 5 if b == 1 else 7,
}  # fmt: skip


def test_a_tensor_of_the_outside_is_read_as_the_graph_so_far_wrote_it():
    for name, read in READS.items():
        for t in (mt, torch):
            count = t.zeros(())

            @t.compile(backend="eager")
            def step(x, count=count, read=read):
                count.add_(1)
                number = read(count)
                count.mul_(3)
                return x + count + number

            results = [step(t.ones(1)).item() for _ in range(2)]
            assert results == {"bool": [5, 14], "compared": [9, 20]}.get(name, [5, 17]), (name, t)


def test_a_function_with_its_own_gradient_is_one_call_of_a_graph():
    for t in (mt, torch):

        class Scale(t.autograd.Function):
            @staticmethod
            def forward(ctx, v, k=3):
                ctx.save_for_backward(v)
                return v * k

            @staticmethod
            def backward(ctx, g):
                return g * 7 * ctx.saved_tensors[0], None

        names, x = [], t.arange(3.0).requires_grad_()

        def backend(module, inputs, names=names):
            names += [n.name for n in module.graph.nodes if n.op != "get_attr"]
            return module.forward

        t.compile(lambda v, f=Scale: f.apply(v, 5).sum(), backend=backend, fullgraph=True)(
            x
        ).backward()
        assert names == ["l_v_", "autograd_function_apply", "getitem", "sum_1", "output"]
        assert x.grad.tolist() == [0, 7, 14]


def test_the_default_backend_is_the_programs():
    graphs = []
    mt.compiler.set_default_backend(recording(graphs))
    try:
        assert mt.compile(lambda x: x + 1)(mt.ones(2)).tolist() == [2, 2]
    finally:
        mt.compiler.set_default_backend(None)
    assert len(graphs) == 1
    assert mt.compiler.get_default_backend() == "inductor"


PARTS = {
    "chain": lambda t, x: (x[:, :1] @ x[:1]).sin().cos().exp().sum(),
    "reduction": lambda t, x: (x.exp().sum(-1, keepdim=True) * x).relu(),
    "repeats": lambda t, x: (x.exp() + x.exp()).tanh() * (x * 2),
    "views": lambda t, x: x.view(-1).sin().view(4, 2).cos(),
    "norm": lambda t, x: t.nn.functional.layer_norm(x, (4,)).relu(),
    "root": lambda t, x: x.pow(2).mean(-1, keepdim=True).add(1e-6).rsqrt() * x,
    "attention": lambda t, x: t.nn.functional.scaled_dot_product_attention(
        x[None, None] * 2, x[None, None].sin(), x[None, None].exp()
    ),
    "convolution": lambda t, x: t.nn.functional.conv1d(x[None], x[:, :, None].relu()[:2, :2]).sin(),
}  # fmt: skip


@pytest.mark.parametrize("partition", ["min_cut_rematerialization_partition", "default_partition"])
@pytest.mark.parametrize("name", PARTS)
def test_graphs_of_gradients_are_parted_as_in_torch(name, partition):
    results = []
    for t in (mt, torch):
        home = "functorch" if t is torch else "mindtorch._compat.functorch"
        functorch, codes = import_module(f"{home}.compile"), []

        def compiler(module, inputs, codes=codes, boxed=functorch.make_boxed_func):
            codes.append(module.code)
            return boxed(module.forward)

        run = functorch.aot_function(
            lambda x, t=t: PARTS[name](t, x), compiler, partition_fn=getattr(functorch, partition)
        )
        for start in (1.0, 3.0):
            x = t.arange(start, start + 8).div(10).reshape(2, 4).requires_grad_()
            run(x).sum().backward()
            codes.append([round(v, 4) for v in x.grad.flatten().tolist()])
        results.append(codes)
    assert results[0] == results[1]


@pytest.mark.parametrize("t", [mt, torch])
def test_compiled_modules_ask_the_class_of_their_parameters(t):
    class Doubled(t.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func is t.nn.functional.linear:
                plain = [a.as_subclass(t.Tensor) if isinstance(a, cls) else a for a in args]
                return func(*plain, **(kwargs or {})) * 2
            return super().__torch_function__(func, types, args, kwargs or {})

    layer = t.nn.Linear(2, 1, bias=False)
    weight = t.ones(1, 2).as_subclass(Doubled)
    layer.weight = t.nn.Parameter(weight, requires_grad=False)
    run = t.compile(layer, backend="aot_eager")
    assert run(t.ones(1, 2)).tolist() == layer(t.ones(1, 2)).tolist() == [[4.0]]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("t", [mt, torch])
def test_gradients_of_compiled_functions_have_no_derivatives(t):
    x, common = (
        t.arange(3.0, requires_grad=True),
        import_module(f"{t.__name__}._dynamo.backends.common"),
    )
    boxed = import_module(
        "functorch.compile" if t is torch else "mindtorch._compat.functorch.compile"
    )
    for backend in ("aot_eager", common.aot_autograd(fw_compiler=boxed.nop)):
        cubes, same = t.compile(lambda v: ((v**3).sum(), v), backend=backend)(x)
        assert same is x
        assert type(cubes.grad_fn).__name__ == "CompiledFunctionBackward"
        (slope,) = t.autograd.grad(cubes, x, create_graph=True)
        assert slope.tolist() == [0.0, 3.0, 12.0]
        with pytest.raises(RuntimeError, match="does not currently support double backward"):
            t.autograd.grad(slope.sum(), x)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["grad", "jacrev", "jacfwd", "vmap"])
def test_transforms_are_compiled_whole(name):
    results = []
    for t in (mt, torch):
        function = getattr(t.func, name)(lambda v: v.sin() if name == "vmap" else v.sin().sum())
        compiled = t.compile(function, backend="aot_eager", fullgraph=True)
        results.append(compiled(t.arange(3.0)).tolist())
    assert results[0] == pytest.approx(results[1])
