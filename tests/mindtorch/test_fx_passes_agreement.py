"""torch.fx.passes and its kin change graphs as in torch: the code that is left, and what is said."""

import importlib
import operator

import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="torch is the oracle")

LIBS = (mindtorch, torch)


def part(lib, name):
    return importlib.import_module(f"{lib.__name__}.fx.{name}")


def net(lib):
    nn = lib.nn
    layers = nn.Conv1d(1, 2, 3), nn.BatchNorm1d(2), nn.ReLU(), nn.Dropout(), nn.Linear(4, 2)
    return nn.Sequential(*layers).eval()


def split_by_tags(lib):
    traced = lib.fx.symbolic_trace(net(lib))
    for at, node in enumerate(traced.graph.nodes):
        if node.op not in ("placeholder", "output"):
            node.tag = "ab"[at > 2]
    split, names = part(lib, "passes.split_utils").split_by_tags(traced, ["a", "b"], True)
    return split.code, split.a.code, split.b.code, names


def common_subexpressions(lib):
    make_fx = part(lib, "experimental.proxy_tensor").make_fx
    graph = make_fx(lambda x: x.cos() + x.cos() * x.sum() + x.sum())(lib.ones(2))
    result = part(lib, "passes.dialect.common.cse_pass").CSEPass()(graph)
    return result.modified, result.graph_module.code


def ordered_passes(lib):
    base, manager = (part(lib, f"passes.infra.pass_{n}") for n in ("base", "manager"))
    seen = []

    class Swap(base.PassBase):
        def requires(self, module):
            seen.append("requires")

        def call(self, module):
            for node in module.graph.nodes:
                if node.target is lib.relu:
                    node.target = lib.sigmoid
            return base.PassResult(module, True)

    def other(module):
        seen.append("other")

    def broken(module):
        raise ValueError

    traced = lib.fx.symbolic_trace(lambda x: lib.relu(x))
    swap, plain = Swap(), manager.pass_result_wrapper(other)
    first = manager.this_before_that_pass_constraint(plain, swap)
    result = manager.PassManager([swap, plain], [first])(traced)
    yield result.graph_module.code, seen
    for passes in ([broken], [plain, other]):
        try:
            manager.PassManager(passes)(traced)
        except Exception as error:
            yield type(error).__name__, str(error), str(error.__cause__)


def partitions(lib):
    support = part(lib, "passes.operator_support").create_op_support(
        lambda modules, node: node.target in (operator.add, lib.add)
    )

    def function(x, y):
        a = lib.add(x + y, x)
        return a.relu() + 1 + y, a + 2

    traced = lib.fx.symbolic_trace(function)
    partitioner = part(lib, "passes.infra.partitioner").CapabilityBasedPartitioner(traced, support)
    proposed = partitioner.propose_partitions()
    fused = partitioner.fuse_partitions(proposed)
    yield [[n.name for n in p.nodes] for p in proposed], fused.code
    yield [m.code for m in fused.children()]


def matches(lib):
    trace = lib.fx.symbolic_trace
    whole = trace(lambda x, y: lib.relu(x @ y) + lib.relu(y @ x) * 2)
    pattern = trace(lambda a, b: lib.relu(a @ b))
    matcher = part(lib, "passes.utils.matcher_utils").SubgraphMatcher(pattern.graph)
    yield [str((m.nodes_map, m.placeholder_nodes)) for m in matcher.match(whole.graph)]
    rewriter = part(lib, "subgraph_rewriter")
    replaced = rewriter.replace_pattern_with_filters(
        whole, lambda x, y: x * y, lambda x, y: x + y, [lambda m, *_: m.placeholder_nodes[1] == 2]
    )
    yield str([r.replacements for r in replaced]), whole.code
    chain = trace(lambda x: lib.relu(lib.relu(lib.relu(x))))
    rewriter.replace_pattern(chain, lambda x: lib.relu(x), lambda x: lib.tanh(x) - x)
    yield chain.code


def for_inference(lib):
    optimization = part(lib, "experimental.optimization")
    fused = optimization.remove_dropout(optimization.fuse(net(lib)))
    return fused.code, [type(m).__name__ for m in fused.children()]


def arguments_by_name(lib):
    functional = lib.nn.functional
    traced = lib.fx.symbolic_trace(lambda x: functional.relu(x, True) + x)
    for module in (traced, lib.fx.symbolic_trace(net(lib))):
        for node in module.graph.nodes:
            yield str(node.normalized_arguments(module, normalize_to_only_use_kwargs=True))


def arguments_as_written(lib):
    def function(x, *args, k=1, **words):
        return lib.cat([x, args[0]], dim=0) + lib.sum(x, dim=0, keepdim=False) * words["a"] + k

    traced = lib.fx.symbolic_trace(function)
    return traced.code, str(traced.graph)


CASES = (split_by_tags, common_subexpressions, ordered_passes, partitions, matches, for_inference,
         arguments_by_name, arguments_as_written)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__)
def test_graphs_are_changed_as_in_torch(case):
    def run(lib):
        result = case(lib)
        return str(list(result)).replace("mindtorch", "torch")

    ours, theirs = map(run, LIBS)
    assert ours == theirs
