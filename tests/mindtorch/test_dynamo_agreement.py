"""Compiled functions become the graphs that torch's become: their code, inputs, breaks, counts."""

import re
from importlib import import_module
from unittest import mock

import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")


def compiled_graphs(lib, calls, **options):
    """Code, input shapes and results of each graph and call."""
    graphs = []

    def backend(module, inputs):
        shapes = [tuple(x.shape) if isinstance(x, lib.Tensor) else repr(x) for x in inputs]
        graphs.append((module.code.strip(), shapes))
        return module.forward

    lib._dynamo.reset()
    function, arguments = calls(lib)
    run = lib.compile(function, backend=backend, **options)
    results = [lib.utils._pytree.tree_map(lambda t: t.tolist(), run(*args)) for args in arguments]
    return graphs, results


class Net:
    """A model with parameters, buffers, containers."""

    def __new__(cls, lib):
        class Net(lib.nn.Module):
            def __init__(self):
                super().__init__()
                self.first = lib.nn.Linear(2, 2)
                self.layers = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.ReLU())
                self.register_buffer("shift", lib.ones(2))

            def forward(self, x):
                y = self.first(x) + self.shift
                y = lib.nn.functional.gelu(y).transpose(0, 1)[:, 0]
                y += 1
                return self.layers(lib.cat([y[None], y[None]], dim=0)), y.mean(-1, keepdim=True)

        net = Net()
        for parameter in net.parameters():
            lib.nn.init.constant_(parameter, 0.5)
        return net


def a_module(lib):
    return Net(lib), [(lib.ones(n, 2),) for n in (2, 3, 5)]


def a_branch(lib):
    def branch(a):
        if a.sum() > 0:
            return a + 1
        return a - 1

    return branch, [(lib.ones(3),), (-lib.ones(3),), (lib.ones(3),)]


def a_print(lib):
    def loud(a, b):
        x = a / (lib.abs(a) + 1)
        print("loud")
        return x * b

    return loud, [(lib.ones(3), lib.ones(3))]


def without_gradients(lib):
    def part(x):
        with lib.no_grad():
            y = x * 3
        return y + x

    return part, [(lib.ones(2),)]


def containers(lib):
    def add(pair, named):
        return {"sum": pair[0] + pair[1], "same": named["k"]}

    one = lib.ones(2)
    return add, [([one, one + 1], {"k": one})]


def a_break(lib):
    def halves(a):
        a = a + 1
        lib._dynamo.graph_break()
        return a * 2

    return halves, [(lib.ones(2),)]


def written_inputs(lib):
    def write(x):
        x.add_(1)
        return x * 2

    return write, [(lib.zeros(2),)]


def written_items(lib):
    def write(x):
        x[0] = 3
        y = x.clone()
        y[:, 1:] *= 2
        first, second = y.split(1, dim=1)
        return first + second, y.T

    return write, [(lib.zeros(2, 2),)]


def autocast(lib):
    def product(x):
        with lib.no_grad():
            y = x * 2
        with lib.autocast("cpu", dtype=lib.bfloat16):
            z = y @ y
        return z.dtype == lib.bfloat16 and z.float()

    return product, [(lib.ones(2, 2),)]


def of_torchs_own(lib):
    norm = lib.nn.LayerNorm(2)
    return norm, [(lib.ones(2, 2),)]


def constants_around(lib):
    one = lib.ones(2)
    return lambda x: x * one, [(lib.ones(2),)]


STORIES = (a_module, a_branch, a_print, without_gradients, containers, a_break, written_inputs,
           written_items, autocast, of_torchs_own, constants_around)  # fmt: skip


@pytest.mark.parametrize("story", STORIES, ids=lambda s: s.__name__)
def test_graphs_are_those_of_torch(story):
    ours, theirs = compiled_graphs(mindtorch, story), compiled_graphs(torch, story)
    names = re.compile(r"[Ll]_stack\d+_")  # what is left of a graph that was broken
    for (code, shapes), (expected, expected_shapes) in zip(ours[0], theirs[0], strict=True):
        assert shapes == expected_shapes
        if not names.search(code) or not names.search(expected):
            assert code == expected or names.search(code)
    torch.testing.assert_close(ours[1], theirs[1])


@pytest.mark.parametrize("story", STORIES, ids=lambda s: s.__name__)
def test_what_breaks_is_refused_with_fullgraph(story):
    def verdict(lib):
        try:
            compiled_graphs(lib, story, fullgraph=True)
        except Exception as error:
            names = [kind.__name__ for kind in type(error).__mro__]
            return names, str(error).splitlines()[0]
        return "one graph"

    assert verdict(mindtorch) == verdict(torch)


@pytest.mark.parametrize("story", STORIES, ids=lambda s: s.__name__)
def test_explanations_count_as_torch(story):
    def counts(lib):
        lib._dynamo.reset()
        function, arguments = story(lib)
        output = lib._dynamo.explain(function)(*arguments[0])
        ops = [[getattr(op, "__name__", str(op)) for op in ops] for ops in output.ops_per_graph]
        return output.graph_count, output.graph_break_count, output.op_count, ops

    assert counts(mindtorch) == counts(torch)


def test_dynamic_sizes_need_one_graph_and_static_ones_a_graph_each():
    for dynamic, count in ((True, 1), (False, 3), (None, 2)):
        for lib in (mindtorch, torch):
            graphs, _ = compiled_graphs(
                lib, lambda lib: (lambda x: x * 2, [(lib.ones(n),) for n in (2, 3, 4)]),
                dynamic=dynamic,
            )  # fmt: skip
            assert len(graphs) == count


def test_graphs_have_sizes_that_change_as_symbols():
    def views(lib):
        return lambda x: x.view(x.shape[0], -1) * x.shape[1], [lib.ones(2, 3), lib.ones(4, 5)]

    def factories(lib):
        f = lambda x: x.sum() / x.shape[0] + lib.zeros(x.shape[0]).sum()  # noqa: E731
        return f, [lib.ones(n, 3) for n in (2, 3, 4)]

    def branches(lib):
        f = lambda x: lib.cat([x, x], 0).reshape(-1) if x.shape[0] > 1 else x  # noqa: E731
        return f, [lib.ones(n, 3) for n in (2, 3, 4, 1)]

    def ranks(lib):
        return lambda x: x + 1, [lib.ones(3), lib.ones(2, 3), lib.ones(4, 3)]

    for story in (views, factories, branches, ranks):
        both = []
        for lib in (mindtorch, torch):
            both.append(compiled_graphs(
                lib, lambda lib, s=story: (s(lib)[0], [(x,) for x in s(lib)[1]])
            )[0])  # fmt: skip
        assert [code for code, _ in both[0]] == [code for code, _ in both[1]]


def test_functions_know_whether_they_are_compiled():
    for lib in (mindtorch, torch):
        inside = lib.compile(lambda c=lib.compiler: c.is_compiling(), backend="eager")
        outside = lib.compiler.disable(lambda c=lib.compiler: c.is_compiling())
        assert (inside(), outside(), lib.compiler.is_compiling()) == (True, False, False)


def _step(lib):
    layer = lib.nn.Linear(2, 1, bias=False)
    lib.nn.init.ones_(layer.weight)
    optimizer = lib.optim.SGD(layer.parameters(), lr=0.5)

    def step(x):
        layer(x).sum().backward()
        optimizer.step()
        return layer.weight.detach().clone()

    return step, [(lib.ones(1, 2),)]


def test_what_compiles_a_function_again_is_named_as_in_torch():
    def outcomes(lib):
        x, dynamo, texts = lib.ones(2), import_module(f"{lib.__name__}._dynamo"), []

        class Scaled(lib.nn.Module):
            scale = 1

            def __init__(self):
                super().__init__()
                self.count = 0

            def forward(self, x):
                self.count += 1
                return x * 2

        def product(x, k=1):
            return x * k

        calls = [(x, 2), (x, 5)], [(x, 2.0), (x, True)], [(x, 2), (x.double(), 2)]
        calls += [(x, 2), (lib.ones(3), 2)], [(x,), (lib.ones(2, 2),)]
        calls += [(x,), (lib.ones(2, requires_grad=True),)], [(lib.ones(3, 3),), (lib.eye(3).t(),)]
        for first, second in calls:
            dynamo.reset()
            compiled = lib.compile(product, backend="eager")
            compiled(*first)
            with dynamo.config.patch(error_on_recompile=True), pytest.raises(RuntimeError) as error:
                compiled(*second)
            texts.append((type(error.value).__name__, str(error.value).partition("  # ")[0]))
        dynamo.reset()
        compiled = lib.compile(Scaled(), backend="eager")
        compiled(x)
        with lib.compiler.set_stance("fail_on_recompile"), pytest.raises(RuntimeError) as error:
            compiled(x)
        return [*texts, str(error.value).partition("  # ")[0]]

    assert outcomes(mindtorch) == outcomes(torch)


def test_an_optimizer_steps_inside_of_what_is_compiled():
    steps = [_step(lib)[0] for lib in (mindtorch, torch)]
    compiled = mindtorch.compile(steps[0], backend="eager")
    for _ in range(2):
        assert compiled(mindtorch.ones(1, 2)).tolist() == steps[1](torch.ones(1, 2)).tolist()


def test_wrong_shapes_are_refused_while_tracing():
    for lib in (mindtorch, torch):
        run = lib.compile(lambda a: a @ a, backend="eager", fullgraph=True)
        with pytest.raises(lib._dynamo.exc.TorchRuntimeError):
            run(lib.ones(2, 3))


def test_a_branch_on_a_number_that_is_read_is_refused_in_a_whole_graph():
    def run(lib):
        for branch in (
            lambda t: t + 1 if t.sum().item() > 0 else t,
            lambda t: t + 1 if t.long()[0].item() <= 3 else t,
        ):
            lib._dynamo.reset()
            with pytest.raises(lib._dynamo.exc.UserError) as error:
                lib.compile(branch, backend="eager", fullgraph=True)(lib.ones(2))
            yield str(error.value).split("\n")[0]
        read = lib.compile(lambda t: t.sum().item(), backend="eager", fullgraph=True)
        yield type(read(lib.ones(2))), read(lib.ones(2)) > 1

    assert list(run(mindtorch)) == list(run(torch))


def test_gradients_reach_what_went_in():
    for lib in (mindtorch, torch):
        x = lib.ones(2, requires_grad=True)
        run = lib.compile(lambda t: (t * 3).sum(), backend=lambda module, inputs: module.forward)
        run(x).backward()
        assert x.grad.tolist() == [3, 3]


@pytest.mark.parametrize("fullgraph", [False, True])
def test_operators_of_users_are_calls_in_graphs_and_have_their_gradients(fullgraph):
    def story(lib):
        name = f"graphs_of_{lib.__name__}_{fullgraph}::squash"
        kernel = lambda t, alpha: t / (alpha + t.abs())  # noqa: E731
        squash = lib.library.custom_op(
            name, kernel, mutates_args=(), schema="(Tensor t, float alpha) -> Tensor"
        )
        squash.register_fake(lambda t, alpha: lib.empty_like(t))
        squash.register_autograd(
            lambda ctx, g: (g * ctx.saved_tensors[0], None),
            setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
        )
        graphs = []

        def backend(module, inputs):
            graphs.append([str(n.target).rpartition("::")[2] for n in module.graph.nodes])
            return module.forward

        x = lib.linspace(-1, 1, 5).requires_grad_()
        run = lib.compile(lambda t: squash(t * 2, 1.0).sum(), backend=backend, fullgraph=fullgraph)
        y = run(x)
        y.backward()
        targets = [t.partition(".")[2] for t in graphs[0] if "squash" in t]
        return len(graphs), targets, y.item(), x.grad.tolist()

    assert story(mindtorch) == story(torch)


def settings(lib):
    """What a program that sets the compiler's options meets."""
    dynamo = import_module(f"{lib.__name__}._dynamo")
    config = dynamo.config
    import_module(f"{lib.__name__}._functorch.config")

    def patched(*args, **kwargs):
        with config.patch(*args, **kwargs):
            return config.suppress_errors, config.verbose

    def failing(module, inputs):
        raise ValueError("no")

    def named(module, inputs):
        return module.forward

    def registered():
        dynamo.register_backend(named, name="named")
        assert "named" in dynamo.list_backends()
        return lib.compile(lambda x: x + 1, backend="named")(lib.ones(2))

    def forced():
        compiled = lib.compile(
            lambda x: x + lib.compiler.is_compiling(), backend=lambda module, inputs: module.forward
        )
        with lib.compiler.set_stance("force_eager"):
            first = compiled(lib.zeros(1))
        return first, compiled(lib.zeros(1))

    def marked():
        x = lib.ones(4, 3)
        dynamo.mark_dynamic(x, 0)
        seen = []

        def backend(module, inputs):
            seen.append([str(n.target) for n in module.graph.nodes if n.op == "placeholder"])
            return module.forward

        lib.compile(lambda x: x * 2, backend=backend)(x)
        return sorted(x._dynamo_dynamic_indices), seen

    testing = import_module(f"{lib.__name__}._dynamo.testing")

    def counted(calls, **options):
        counter = testing.CompileCounter()
        run = lib.compile(lambda x: x * 2, backend=counter, dynamic=False, **options)
        for n in range(2, calls + 2):
            run(lib.ones(n))
        return counter.frame_count

    def limited(**options):
        with config.patch(**options):
            return counted(3)

    def in_stance(stance):
        counter = testing.CompileCounter()
        run = lib.compile(lambda x: x * 2, backend=counter, dynamic=False)
        run(lib.ones(2))
        with lib.compiler.set_stance(stance):
            run(lib.ones(3))
        return counter.frame_count

    def whole():
        given = lib.ones(2, 3), {"b": lib.ones(2, 3) * 2, "d": 3}
        graph, _ = dynamo.export(lambda x, y: {"a": x.sin() + y["b"], "c": x})(*given)
        return graph.code, str(graph(*given))

    def of_a_module():
        net = Net(lib)
        graph, _ = dynamo.export(net)(lib.ones(3, 2))
        return sorted(n for n, _ in graph.named_parameters()), str(graph(lib.ones(2, 2)))

    def one_node():
        @lib.compiler.allow_in_graph
        def double(x):
            return x * 2

        graphs = testing.EagerAndRecordGraphs()
        result = lib.compile(lambda x: double(x + 1), backend=graphs)(lib.ones(2))
        names = [str(n.name) for n in graphs.graphs[0].graph.nodes]
        return names, str(result), lib.compiler.allow_in_graph([double])[0] is not None

    def both_graphs():
        kept, x = testing.AotEagerAndRecordGraphs(), lib.ones(2, requires_grad=True)
        lib.compile(lambda x: x.sin() + 1, backend=kept)(x).sum().backward()
        return [g.code for g in (*kept.fw_graphs, *kept.bw_graphs)], str(x.grad)

    def agreeing():
        x = testing.rand_strided((2, 3), (1, 2))
        pairs = (x, x), ([x, {"a": x}], [x, {"a": x + 1}]), (x, x.double()), (x, x[0]), (1, 1)
        return x.stride(), [testing.same(*pair) for pair in pairs], testing.normalize_gm("# a\nb ")

    def reported():
        report = lib.export.draft_export(lib.nn.Linear(3, 2), (lib.ones(1, 3),))._report
        return str(report), report.failures, report.successful(), type(report).__name__

    def mocked():
        for value in (True, False):
            with mock.patch(f"{config.__name__}.suppress_errors", value):
                assert config.suppress_errors is value
        return config.suppress_errors

    plus = lib.compile(lambda x: x + 1, backend=failing)
    yield from (
        mocked,
        lambda: counted(10), lambda: counted(4, recompile_limit=2),
        lambda: counted(3, recompile_limit=2, fullgraph=True),
        lambda: limited(recompile_limit=2, fail_on_recompile_limit_hit=True),
        lambda: in_stance("nothing"), lambda: in_stance("eager_on_recompile"), whole, of_a_module,
        one_node, both_graphs, agreeing, reported,
        lambda: config.nothing, lambda: setattr(config, "nothing", 1),
        lambda: patched(nothing=1), lambda: patched("suppress_errors", True),
        lambda: patched(suppress_errors=True, verbose=True), lambda: patched({"verbose": True}),
        lambda: (config.suppress_errors, config.cache_size_limit, config.recompile_limit),
        lambda: sorted(config.shallow_copy_dict())[:5] and config.assume_static_by_default,
        lambda: import_module(f"{lib.__name__}._functorch.config").nothing,
        lambda: plus(lib.ones(1)), registered, forced, marked,
        lambda: lib.compile(lambda x: x, mode="nothing"),
        lambda: lib.compile(lambda x: x, mode="default", options={"a": 1}),
        lambda: lib.compile(lambda x: x, backend="nothing"),
        lambda: [c.__mro__[1].__name__ for c in (
            dynamo.exc.UserError, dynamo.exc.Unsupported, dynamo.exc.BackendCompilerFailed
        )],
        lambda: type(lib.compile(lib.nn.ReLU(), backend="eager")).__module__.partition(".")[2],
        lambda: dynamo.is_dynamo_supported(),
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("at", range(31))
def test_settings_backends_and_stances_are_those_of_torch(at):
    outcomes = []
    for lib in (mindtorch, torch):
        import_module(f"{lib.__name__}._dynamo").reset()
        try:
            outcomes.append(str(list(settings(lib))[at]()))
        except Exception as error:
            outcomes.append(f"{type(error).__name__} {str(error).splitlines()[:2]}")
    assert outcomes[0] == outcomes[1]


MARKS = {
    "view": lambda t, x: x.reshape(4, 2) + 1, "other": lambda t, x: x + t.ones(4, 1),
    "equal": lambda t, x: x + 1 if x.shape[0] == 4 else x, "free": lambda t, x: x * x.shape[0],
    "branch": lambda t, x: x + 1 if x.shape[0] > 3 else x,
}  # fmt: skip


@pytest.mark.parametrize("mark", ["mark_dynamic", "maybe_mark_dynamic", "mark_static"])
@pytest.mark.parametrize("name", MARKS)
def test_marked_sizes_are_fixed_or_refused_as_in_torch(name, mark, caplog):
    def story(lib):
        graphs = []

        def backend(module, inputs):
            graphs.append(len(inputs))
            return module.forward

        lib._dynamo.reset()
        run = lib.compile(lambda x: MARKS[name](lib, x), backend=backend, fullgraph=True)
        for size in (4, 5, 6) if name == "free" else (4,):
            x = lib.ones(size, 2)
            getattr(lib._dynamo, mark)(x, 0)
            try:
                yield run(x).tolist()
            except RuntimeError as error:
                yield type(error).__name__, str(error)
        yield graphs

    with caplog.at_level("CRITICAL"):
        assert list(story(mindtorch)) == list(story(torch))


def test_a_marked_size_is_within_its_bounds():
    for lib in (mindtorch, torch):
        x = lib.ones(4)
        lib._dynamo.mark_dynamic(x, 0, min=2, max=3)
        with pytest.raises(RuntimeError, match=r"4 not in range \[2, 3\]"):
            lib.compile(lambda x: x + 1, backend="eager")(x)
