"""torch.fx.passes and its kin change graphs as in torch: the code that is left, and what is said."""

import copy
import functools
import importlib
import operator
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

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


def sums(lib):
    """A module whose weights are summed before they are used."""

    class Sums(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.l1, self.w = lib.nn.Linear(3, 4), lib.nn.Parameter(lib.ones(3))
            self.register_buffer("b", lib.ones(3))

        def forward(self, x):
            assert x.sum() > 0, "no positive sum"
            y = x + (self.w + self.b)
            return self.l1(y * (self.w * 2)).relu(), y

    return Sums()


def folded_constants(lib):
    fold = part(lib, "experimental.const_fold")
    tracer = part(lib, "experimental.rewriter").RewritingTracer
    whole = sums(lib)
    traced = lib.fx.GraphModule(whole, tracer().trace(whole))
    yield (
        traced.code,
        fold.get_unique_attr_name_in_module(traced, "1 w.w"),
        lib.fx.symbolic_trace(lib.nn.Linear(1, 1)).code,
    )
    for skip in (None, lambda node: node.name == "mul"):
        traced = lib.fx.GraphModule(whole, tracer().trace(whole))
        folded = fold.split_const_subgraphs(traced, skip)
        yield folded.code.replace("    w = self.w\n", ""), folded.const_subgraph_module.code
        yield folded(lib.ones(2, 3))[1].tolist(), sorted(dict(folded.named_parameters()))
        with pytest.raises(AssertionError) as error:
            folded.run_folding()
        yield str(error.value)
    yield fold.split_const_subgraphs(lib.nn.Linear(1, 1)).const_subgraph_module


def spelled_calls(lib):
    F, normalize = lib.nn.functional, part(lib, "experimental.normalize")
    calls = lib.fx.symbolic_trace(lambda x: lib.mul(x, lib.relu(x)) + F.softmax(x, 1) + F.elu(x))
    types = part(lib, "experimental.schema_type_annotation").AnnotateTypesWithSchema
    for made in (calls, lib.fx.symbolic_trace(net(lib))):
        yield normalize.NormalizeArgs(made).transform().code
        yield normalize.NormalizeOperators(made).transform().code
        yield types(made).transform().code


def written_in_place(lib):
    make_fx = part(lib, "experimental.proxy_tensor").make_fx
    reinplace = part(lib, "passes.reinplace").reinplace
    x = lib.ones(2, 3)
    for function in (
        lambda x: (x + 1).add(2).mul(3), lambda x: x.sin().cos() + x, lambda x: x.neg().t().exp(),
        lambda x: (lambda y: y + (y * 2))(x.sin()), lambda x: (lambda y: (y.exp(), y[0]))(x + 1),
    ):  # fmt: skip
        changed = reinplace(make_fx(function)(x), x)
        yield changed.code, str(changed(x))


def merged_products(lib):
    class Products(lib.nn.Module):
        def forward(self, x, y, w):
            a, b = lib.matmul(x, w), lib.matmul(y, w)
            return a.relu(), b, lib.matmul(a, a.t())

    merged = part(lib, "experimental.merge_matmul").merge_matmul(Products())
    return merged.code, str(merged(lib.ones(1, 2), lib.ones(3, 2), lib.ones(2, 2)))


def noted_sizes(lib):
    sizes = part(lib, "passes.graph_manipulation")
    traced = lib.fx.symbolic_trace(net(lib))
    sizes.get_size_of_all_nodes(traced, [lib.ones(1, 1, 6)])
    for node in traced.graph.nodes:
        yield str(getattr(node, "size_bytes", None))
    fetch = part(lib, "passes.param_fetch").lift_lowering_attrs_to_nodes
    with pytest.raises(RuntimeError) as error:
        fetch(traced)
    yield str(error.value)
    layers = lib.fx.symbolic_trace(lib.nn.Sequential(lib.nn.Linear(1, 2), lib.nn.ReLU()))
    fetch(layers)
    for node in layers.graph.nodes:
        yield (
            sorted(getattr(node, "attrs_for_lowering", {})),
            getattr(node, "attrs_for_lowering", {}).get("name"),
        )
    sizes.replace_target_nodes_with(traced, "call_module", "2", "call_function", lib.sigmoid)
    yield traced.code
    types = part(lib, "tensor_type")
    kind = types.TensorType((1, types.Dyn))
    yield (
        kind,
        types.is_consistent(kind, types.TensorType((1, 2))),
        types.is_more_precise(types.Dyn, kind),
    )


def managed_passes(lib):
    manager = part(lib, "passes.pass_manager")
    seen = []

    def first(module):
        seen.append("first")

    def second(module):
        return module

    passes = manager.PassManager([second, manager.inplace_wrapper(first)])
    passes.add_pass(manager.loop_pass(second, 3))
    yield passes(lib.fx.symbolic_trace(net(lib))).code, seen
    passes.add_constraint(manager.this_before_that_pass_constraint(passes.passes[1], second))
    with pytest.raises(RuntimeError) as error:
        passes(None)
    yield str(error.value).partition(" at index ")[0].split(" 0x")[0]
    with pytest.raises(AssertionError) as error:
        manager.loop_pass(second)
    yield str(error.value)


class Pair(NamedTuple):
    left: object
    right: object


@dataclass
class Record:
    one: object
    two: object = 3


class Kind(Enum):
    FIRST = 1


def doubled(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        return function(*args, **kwargs) * 2

    return call


def kinds_of_values(lib):
    x = lib.ones(2)
    tracer = lib.fx.Tracer()
    for function in (
        lambda x: [Pair(x, {"k": Pair(1, x)})],
        lambda x: {"a": Record(Record(x), two=[x * 2])},
        lambda x: lib.where(x > 0, x, Kind.FIRST.value) if x is not None else x,
        lambda x: pick(x, Kind.FIRST),
        doubled(lambda x: x + 1),
    ):
        tracer._autowrap_function_ids.add(id(pick))
        traced = lib.fx.GraphModule(lib.nn.Module(), tracer.trace(function))
        yield traced.code, repr(traced(x)), traced._lineno_map, traced._prologue_start
        yield traced.forward.__code__.co_filename.partition(" from ")[2]
        traced.meta["own"] = traced
        copied = copy.deepcopy(traced)
        yield copied.meta["own"] is copied


def pick(x, kind):
    return x * kind.value


def refused_functions(lib):
    class Strict(lib.fx.Tracer):
        check_mutable_operations = True

    class Named(lib.fx.Tracer):
        traced_func_name = "other"

    for tracer, root in (
        (Strict(), lambda x: lib.sigmoid(x, out=lib.rand_like(x))), (Strict(), lambda x: x.add_(1)),
        (Named(), net(lib)),
    ):  # fmt: skip
        try:
            yield str(tracer.trace(root))
        except (AssertionError, RuntimeError) as error:
            yield str(error)


def containers_traced_again(lib):
    pytree = lib.utils._pytree
    inputs = {"a": lib.fx.PH, "z": [lib.fx.PH, lib.fx.PH]}
    value = pytree.tree_map(lambda _: lib.ones(2), inputs)
    traced = lib.fx.symbolic_trace(lambda x: x["a"] + x["z"][1], concrete_args={"x": inputs})
    again = lib.fx.symbolic_trace(traced)
    yield again.code, again(value).tolist()


def notes_of_nodes(lib):
    notes = part(lib, "traceback")
    traced = lib.fx.symbolic_trace(lambda x: x.sin() + 1)
    for at, node in enumerate(traced.graph.nodes):
        node.meta.update(stack_trace=f"line {at}", nn_module_stack="net", other=1, custom={"k": 2})

    def listing(module):
        keys = "stack_trace", "nn_module_stack", "other", "custom", "original_aten"
        return [[str(n.meta.get(k)) for k in keys] for n in module.graph.nodes]

    yield listing(lib.fx.Transformer(traced).transform())
    make_fx = part(lib, "experimental.proxy_tensor").make_fx

    def annotated(x):
        with notes.annotate({"own": 1}):
            y = x + 1
        return y * 2

    with notes.preserve_node_meta():
        yield listing(make_fx(lib.fx.Interpreter(traced).run)(lib.ones(2)))[1:3]
        yield listing(make_fx(annotated)(lib.ones(2)))[:3]
    yield listing(make_fx(annotated)(lib.ones(2)))


OVERLOADS = (
    "sigmoid.out", "add.out", "relu_.default", "cat.out", "mm.out", "topk.values", "exp.out",
    "_foreach_neg_.default", "_foreach_sigmoid.out", "clamp.out", "max.dim_max", "transpose.int",
)  # fmt: skip


def schemas(lib):
    for packet, overload in (name.split(".") for name in OVERLOADS):
        schema = getattr(getattr(lib.ops.aten, packet), overload)._schema
        yield str(schema).replace("SymInt", "int"), schema.is_mutable


CASES = (kinds_of_values, refused_functions, containers_traced_again, notes_of_nodes, schemas,
         folded_constants, spelled_calls, written_in_place, merged_products, noted_sizes,
         managed_passes, split_by_tags, common_subexpressions, ordered_passes, partitions, matches, for_inference,
         arguments_by_name, arguments_as_written)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__)
def test_graphs_are_changed_as_in_torch(case):
    def run(lib):
        result = case(lib)
        return str(list(result)).replace("mindtorch", "torch")

    ours, theirs = map(run, LIBS)
    assert ours == theirs
