"""Tools around a program: what their users override, read and pass on is there as in torch."""

import gzip
import importlib
import io
import json
import unittest

import pytest
from agreement import agree

import mindtorch

torch = pytest.importorskip("torch", reason="torch 2.13 is the reference")


def test_transforms_of_users_go_back_by_their_inverse():
    def run(t):
        class Cubed(t.distributions.transforms.Transform):
            domain = codomain = t.distributions.constraints.real
            bijective, sign = True, 1

            def _call(self, x):
                return x**3

            def _inverse(self, y):
                return y.sign() * y.abs() ** (1 / 3)

            def log_abs_det_jacobian(self, x, y):
                return (3 * x * x).log()

        cubed, points = Cubed(cache_size=1), t.tensor([0.5, -2.0])
        parts = [cubed, t.distributions.AffineTransform(1.0, 2.0)]
        spread = t.distributions.TransformedDistribution(t.distributions.Normal(0.0, 1.0), parts)
        both = t.distributions.ComposeTransform(parts)
        shown = (
            cubed.inv(points), both.inv(both(points)), spread.log_prob(points), spread.cdf(points),
            spread.icdf(points.abs() / 4), cubed.inv.log_abs_det_jacobian(cubed(points), points),
        )  # fmt: skip
        same = cubed.inv(cubed(points)) is points
        return t.stack(shown).mul(1e4).round(), same, type(cubed.inv).__name__  # to four decimals

    agree(run)


def test_exponential_families_of_users_have_their_entropy():
    def run(t):
        class Rate(t.distributions.ExponentialFamily):
            _mean_carrier_measure = 0

            def __init__(self, rate):
                self.rate = rate
                super().__init__(rate.shape, validate_args=False)

            @property
            def _natural_params(self):
                return (-self.rate,)

            def _log_normalizer(self, x):
                return -(-x).log()

        return Rate(t.tensor([0.5, 3.0])).entropy()

    agree(run)


# What torch's own tests take as equal, and say of what is not.
EQUAL = """
1, True;t.tensor(1), True;t.tensor(1.0), 1;t.tensor([1.0, 2.0]), 1;t.ones(2), True;{1}, {2}
int, float;object, 3;"a", b"a";[1, "a"], [1, "b"];t.ones(2), [1.0, 1.0];range(2), [0, 1]
t.ones(2), t.ones(2).double();1.0, 1.0000001;float("nan"), float("nan");None, 1;None, None
t.float32, t.float64;(1, 2), [1, 3], "hm";{"a": t.ones(1)}, {"a": 1};1j, 1;t.ones(2), t.zeros(2)
t.ones(2).to(t.float8_e5m2), t.zeros(2).to(t.float8_e5m2);1, 2, lambda text: text[:5]
"""


def test_a_test_case_compares_and_is_parametrized_as_torchs():
    pytest.importorskip("expecttest", reason="torch's common_utils imports it")

    def run(t):
        tools = importlib.import_module(f"{t.__name__}.testing._internal.common_utils")

        class Case(tools.TestCase):
            @tools.parametrize("x,y", [(1, t.float32), tools.subtest((2.5, "q"), name="named")])
            @tools.parametrize("z", [object(), "s"])
            def test_a(self, x, y, z):
                self.assertEqual(x, 1)  # noqa: PT009 - what is tested

        tools.instantiate_parametrized_tests(Case)
        seen = unittest.TestResult()
        unittest.defaultTestLoader.loadTestsFromTestCase(Case).run(seen)
        compare, told = tools.TestCase().assertEqual, []
        for pair in EQUAL.replace("\n", ";").strip(";").split(";"):
            try:
                told.append(compare(*eval(f"({pair},)", {"t": t})))
            except Exception as error:
                told.append((type(error).__name__, str(error)))
        names = sorted(n for n in dir(Case) if n.startswith("test"))
        return told, names, seen.testsRun, [text.split("\n")[-9:] for _, text in seen.failures]

    agree(run)


def _profile(t):
    watched = t.profiler.profile(activities=[t.profiler.ProfilerActivity.CPU])
    with watched as prof, t.profiler.record_function("outer"):
        for name in ("first", "second"):
            with t.profiler.record_function(name):
                t.ones(3)
    return prof


def test_events_tell_when_they_were_and_what_is_inside():
    def run(t):
        events = [e for e in _profile(t).events() if e.is_user_annotation]
        outer, first, second = events
        return (
            [e.name for e in events], [c.name for c in outer.cpu_children], first.cpu_parent is outer,
            outer.cpu_parent, outer.time_range.start <= first.time_range.start,
            first.time_range.end <= second.time_range.start, second.time_range.end <= outer.time_range.end,
            abs(outer.time_range.elapsed_us() - outer.cpu_time_total) < 1, outer.count, outer.scope,
        )  # fmt: skip

    agree(run)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("averaged", [False, True])
def test_events_have_the_attributes_of_torchs_that_are_documented(averaged):
    def public(t):
        prof = _profile(t)
        event = (prof.key_averages() if averaged else prof.events())[0]
        return {n: getattr(event, n) for n in dir(event) if not n.startswith("_")}

    theirs, ours = public(torch), public(mindtorch)
    assert set(theirs) - set(ours) <= set(_OF_KINETO.split())
    for name in ("stack", "input_shapes", "use_device", "node_id", "flops", "key", "count"):
        assert ours[name] == theirs[name], name
    assert all(ours[n].endswith("s") for n in ours if n.endswith("_str"))


# Calls, and what profilers see of torch's operators made of others.
WHOLE = {
    "F.scaled_dot_product_attention(q, q, q)": "scaled_dot_product_attention",
    "t.nn.MultiheadAttention(4, 2)(x, x, x, need_weights=False)": "scaled_dot_product_attention",
    "t.einsum('ij,kj->ik', x, x)": "einsum", "F.dropout(x)": "dropout", "F.glu(x)": "glu",
    "F.cross_entropy(x, t.tensor([1, 2, 3]))": "cross_entropy_loss", "F.pad(x, (1, 1))": "pad",
    "F.cosine_similarity(x, x)": "cosine_similarity", "F.one_hot(t.tensor([1]))": "one_hot",
    "F.rms_norm(x, (4,))": "rms_norm", "x.chunk(2)": "chunk", "x.mT.reshape(12)": "reshape",
    "F.instance_norm(q)": "instance_norm batch_norm", "F.max_pool1d(x, 2)": "max_pool1d",
    "F.softmax(x, 0)": "softmax", "F.conv1d(q[0], q[0])": "conv1d", "F.normalize(x)": "div",
}  # fmt: skip


def test_profilers_see_composites_once():
    def run(t):
        scope = {"t": t, "F": t.nn.functional, "x": t.ones(3, 4), "q": t.ones(2, 2, 3, 4)}
        seen = []
        for text, names in WHOLE.items():
            activities = [t.profiler.ProfilerActivity.CPU]
            with t.no_grad(), t.profiler.profile(activities=activities) as prof:
                eval(text, scope)
            counts = {e.key: e.count for e in prof.key_averages()}
            seen.append((text, [counts.get(f"aten::{name}") for name in names.split()]))
        return seen

    agree(run)


def test_profilers_count_operations_and_memory_in_columns_of_their_own():
    def run(t):
        options = {"profile_memory": True, "with_flops": True}
        with t.profiler.profile(**options) as prof:
            x = t.ones(64, 64)
            image = t.ones(2, 3, 8, 8)
            results = [t.nn.functional.linear(x, x, x[0]), x @ x, (x + x).relu(), x.sum(0),
                       x[None].bmm(x[None]), x * x, x.double(), x.clone(),
                       t.nn.functional.conv2d(image, t.ones(1, 3, 3, 3), padding=1)]  # fmt: skip
        averages = prof.key_averages()
        events = [e for e in averages if e.key != "[memory]" and "conv" not in e.key]
        memory = {e.key: (e.cpu_memory_usage, e.self_cpu_memory_usage) for e in events}
        of_conv = ("aten::empty", "aten::as_strided_", "aten::resize_", "aten::_nnpack_available")
        table = averages.table(sort_by="flops", row_limit=2, header="Head", time_unit="s")
        return (
            {k: v for k, v in memory.items() if k not in of_conv},
            {e.key: e.flops for e in averages if e.flops}, len(results),
            table.split("\n")[1], table.split("\n")[3].split(), table.count("\n"),
        )  # fmt: skip

    agree(run)


def test_profilers_note_shapes_of_products_and_kinds_of_ranges(tmp_path):
    names = {"aten::addmm", "aten::linear", "aten::mm", "layers"}

    def run(t):
        with t.profiler.profile(record_shapes=True) as prof, t.profiler.record_function("layers"):
            (t.nn.Linear(4, 2)(t.nn.functional.linear(t.ones(3, 5), t.ones(4, 5)))).sum().backward()
        prof.export_chrome_trace(str(tmp_path / t.__name__))
        trace = json.loads((tmp_path / t.__name__).read_text())["traceEvents"]
        kinds = {(e["name"], e["cat"], "Ev Idx" in e["args"]) for e in trace if e["name"] in names}
        shapes = [
            str(e.input_shapes) for e in prof.events() if e.name in ("aten::addmm", "aten::linear")
        ]
        return sorted(kinds), shapes, sum(e.name == "aten::mm" for e in prof.events())

    agree(run)

    def parts(t):
        x = t.ones(4, 4)
        with t.profiler.profile(record_shapes=True) as prof:
            (x @ x).relu().sum()
            t.nn.functional.linear(x, x)
        averages = prof.key_averages(group_by_input_shape=True)
        seen = ("aten::t", "aten::transpose", "aten::sum", "aten::clamp_min", "aten::resolve_conj")
        return sorted((e.key, e.count, str(e.input_shapes)) for e in averages if e.key in seen)

    agree(parts)


def test_profilers_pause_and_write_their_trace_once(tmp_path):
    def run(t):
        cpu, folder = t.profiler.ProfilerActivity.CPU, tmp_path / f"{t.__name__}s"

        def layer(name):
            with t.profiler.record_function(name):
                t.ones(2) * 2

        handler = t.profiler.tensorboard_trace_handler(str(folder), use_gzip=True)
        with t.profiler.profile(activities=[cpu], on_trace_ready=handler) as prof:
            layer("seen")
            with t.profiler.record_function("around"):
                prof.toggle_collection_dynamic(False, [cpu])
                layer("hidden")
            prof.toggle_collection_dynamic(False, [cpu])
            with t.profiler.record_function("begun before"):
                prof.toggle_collection_dynamic(True, [cpu])
            prof.toggle_collection_dynamic(False, [t.profiler.ProfilerActivity.CUDA])
            layer("last")
        (path,) = folder.iterdir()
        named = {e["name"] for e in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]}
        layers = {"seen", "around", "hidden", "begun before", "last"}
        yield sorted(named & layers), path.suffixes[-4:]
        for call in (
            lambda: prof.export_chrome_trace(str(tmp_path / "again")),
            lambda: t.profiler.profile(activities=[cpu, cpu]),
            lambda: t.profiler.profile(activities=[cpu, "cpu"]),
        ):
            try:
                call()
            except Exception as error:
                yield f"{type(error).__name__} {error}"

    agree(lambda t: list(run(t)))


# What Kineto, its devices and Python's tracer add, and how torch builds its own events.
_OF_KINETO = (
    "activity_type add append_cpu_child append_kernel cpu_children cpu_parent device_index "
    "device_resource_id device_type event_metadata external_id flow_id flow_start flow_type "
    "input_dtypes is_python_function linked_correlation_id metadata_json python_id "
    "python_module_id python_parent_id self_cpu_percent self_cuda_memory_usage set_cpu_parent "
    "structured_input_shapes structured_input_strides total_cpu_percent total_device_percent"
)


def test_a_policy_chooses_what_a_checkpoint_saves():
    def run(t):
        module, asked = t.utils.checkpoint, []
        policies = module.CheckpointPolicy

        def policy(context, operator, *args, **kwargs):
            asked.append((str(operator), context.is_recompute, context.op_output is None))
            products = (t.ops.aten.addmm.default, t.ops.aten.mm.default)
            return policies.MUST_SAVE if operator in products else policies.PREFER_RECOMPUTE

        def grads(**options):
            t.manual_seed(0)
            layer, x = t.nn.Linear(3, 3), t.arange(6.0).view(2, 3).requires_grad_()
            bent = module.checkpoint(
                lambda x: layer(x).sin().exp() @ x.T, x, use_reentrant=False, **options
            )
            bent.sum().backward()
            return x.grad, layer.weight.grad

        def contexts(policy):
            return {"context_fn": lambda: module.create_selective_checkpoint_contexts(policy)}

        plain = grads()
        everything = [lambda *_, choice=choice, **__: choice for choice in policies]
        chosen = [policy, [t.ops.aten.sin.default], *everything]
        same = [all(map(t.equal, plain, grads(**contexts(p)))) for p in chosen]
        views = ("aten.t.default", "aten.transpose.int")
        return same, [a for a in asked if a[0] not in views]

    agree(run)


def test_what_is_saved_is_not_computed_again_and_not_written_to():
    def run(t):
        module, ran = t.utils.checkpoint, []

        class Seen(t.utils._python_dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                ran.append(str(func))
                return func(*args, **(kwargs or {}))

        def once(function, saved, **options):
            x = t.tensor([0.5, 2.0], requires_grad=True)
            contexts = module.create_selective_checkpoint_contexts
            with Seen():
                y = module.checkpoint(
                    function, x, use_reentrant=False, context_fn=lambda: contexts(saved, **options)
                )
                y.sum().backward()
            return x.grad.isfinite().all().item()

        for saved in ([], [t.ops.aten.sin.default]):
            once(lambda x: x.sin().exp(), saved)
            ran.append("")
        outcome = [name for name in ran if name in ("aten.sin.default", "")]
        for options in ({}, {"allow_cache_entry_mutation": True}):
            try:
                outcome.append(once(lambda x: x.sin().add_(1).exp(), saved, **options))
            except RuntimeError as error:
                outcome.append(str(error))
        return outcome

    agree(run)


@pytest.mark.parametrize("wrong", ["3", "['x']", "[t.ops.aten.mm]"])
def test_policies_that_are_none_are_refused(wrong):
    contexts = "t.utils.checkpoint.create_selective_checkpoint_contexts"
    agree(lambda t: eval(f"{contexts}({wrong})", {"t": t}), text=wrong == "3")


def _traced(t):
    class Net(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = t.nn.Parameter(t.full((3,), 2.0))
            self.first, self.second = t.nn.Linear(3, 3), t.nn.Linear(3, 3)

        def forward(self, x, shift=1.0):
            h = self.first(x) * self.scale
            left, right = t.split(h.relu() + shift, [1, 2], -1)
            return {"y": self.second(self.first(h)) + left, "right": right, "x": x}

    return t.fx.symbolic_trace(Net())


@pytest.mark.parametrize(
    "options",
    [{}, {"tuple_return": True}, {"partition_affix": "p"}, {"keep_original_order": True},
     {"keep_original_node_name": True}],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("numbers", ["0", "012", "1", "1032", "0101", "000111222"])
def test_graphs_are_split_into_modules(numbers, options):
    """`numbers` are the parts of the nodes in turn, or of ninths of them where there are nine."""

    def run(t):
        split_module = importlib.import_module(f"{t.__name__}.fx.passes.split_module").split_module
        net, seen, names = _traced(t), [], {}

        def part(node):
            seen.append(node)
            place = len(seen) - 1
            return int(
                numbers[min(place, 8)] if len(numbers) == 9 else numbers[place % len(numbers)]
            )

        parts = split_module(net, net, part, names, **options)
        x = t.arange(6.0).view(2, 3)
        ours, whole = parts(x), net(x)
        code = [parts.code, *(p.code for p in parts.children())]
        same = [t.equal(ours[k], whole[k]) for k in whole]
        held = [sorted(dict(p.named_parameters())) for p in parts.children()]
        return [c.replace("dim = -1", "-1") for c in code], names, same, held

    agree(run)


def test_records_of_a_file_are_read_by_name(tmp_path):
    path = tmp_path / "saved.pt"
    torch.save({"a": torch.arange(3.0), "b": torch.ones(2, dtype=torch.int64)}, path)

    def run(t):
        read = []
        for source in (str(path), io.BytesIO(path.read_bytes())):
            reader = t._C.PyTorchFileReader(source)
            for name in (names := reader.get_all_records()):
                asked = (reader.get_record, reader.get_record_size, reader.get_record_offset,
                         reader.get_record_header_offset)  # fmt: skip
                read.append([str(ask(name)) for ask in asked])
            storage = reader.get_storage_from_record("data/0", 3, t.float32).untyped_storage()
            read += [names, reader.has_record("data/0"), reader.has_record("c"),
                     reader.serialization_id(), storage.tolist()]  # fmt: skip
        return read

    agree(run)


@pytest.mark.parametrize(
    "ask",
    [lambda r: r(io.BytesIO(b"junk")), lambda r: r(3), lambda r: r("/nonexistent/file")],
    ids=["junk", "number", "nothing"],
)
def test_what_is_no_file_of_records_is_refused(ask):
    agree(lambda t: ask(t._C.PyTorchFileReader), text=False)


@pytest.mark.parametrize("name", ["get_record", "get_record_size", "get_record_offset"])
def test_a_record_that_is_not_there_is_refused(tmp_path, name):
    torch.save([], tmp_path / "saved.pt")
    reader = str(tmp_path / "saved.pt")
    agree(lambda t: getattr(t._C.PyTorchFileReader(reader), name)("data/9"), text=False)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize(
    "options", [{}, {"B": True}, {"iK": True}, {"sparse": True}, {"batch": True}], ids=str
)
def test_eigenpairs_are_found_by_products(largest, options):
    """Values as torch's to four digits; vectors by what they hold to."""

    def run(t):
        t.manual_seed(0)
        size, count = 12, 3
        turned = t.linalg.qr(t.sin(t.arange(144.0, dtype=t.float64).view(12, 12) ** 2))[0]
        matrix = turned @ t.diag(t.arange(1.0, 13, dtype=t.float64)) @ turned.T
        weights = t.diag(t.linspace(1, 2, size, dtype=t.float64)) if "B" in options else None
        A = t.stack([matrix, 2 * matrix]) if "batch" in options else matrix
        more = {"iK": t.linalg.inv(matrix)} if "iK" in options else {}
        taken = A.to_sparse() if "sparse" in options else A
        e, x = t.lobpcg(taken, k=count, B=weights, largest=largest, niter=200, **more)
        rest = A @ x - (x if weights is None else weights @ x) * e[..., None, :]
        return e, tuple(x.shape), (rest.norm() < 1e-5 * A.norm()).item()

    agree(run, digits=4)


def test_eigenpairs_found_by_products_have_gradients():
    def run(t):
        A = t.diag(t.arange(1.0, 13, dtype=t.float64)).requires_grad_()
        X = t.ones(12, 2, dtype=t.float64) + t.eye(12, 2, dtype=t.float64)
        e, x = t.lobpcg(A, X=X, niter=500, tol=1e-12)
        slopes = t.arange(24.0, dtype=t.float64).view(12, 2)
        ((e**2).sum() + (x**2 * slopes).sum() + (x[:, 0] * x[:, 0].flip(0)).sum()).backward()
        return A.grad.mul(1e4).round() + 0.0  # to four decimals; no zero has a sign

    agree(run)


def test_wrong_calls_for_eigenpairs_are_refused():
    for size, options in (((12, 12), {"k": 5}), ((3, 4), {"k": 1}), ((3, 3), {"k": 2})):
        agree(
            lambda t, size=size, options=options: t.lobpcg(t.ones(size), **options),
            text=size == (12, 12),
        )
    agree(lambda t: t.lobpcg(t.eye(12), X=t.ones(11, 2)), text=False)


def test_measurements_are_torchs_by_name_and_figures():
    def run(t):
        b = importlib.import_module(f"{t.__name__}.utils.benchmark")
        spec = b.TaskSpec("x", "pass", label="L", sub_label="s", description="d")
        m = b.Measurement(1, [1e-3] * 4, spec)
        refusals = []
        for language in ("java", 3):
            try:
                b.Timer("x", language=language)
            except ValueError as error:
                refusals.append(str(error))
        kinds = [c.__module__.partition(".")[2] for c in (b.Measurement, b.Timer, b.Compare)]
        units = [b.select_unit(v) for v in (7.0, 2e-3, 3e-6, 4e-9, 1e-12)]
        figures = [b.trim_sigfig(v, 2) for v in (0.0123, 1234.5)]
        none = b.Measurement(1, [], spec)
        quiet = none.median, none.mean, none.iqr, none.has_warnings
        return refusals, kinds, str(b.Compare([m])), figures, units, quiet

    agree(run)


def test_fuzzed_parameters_and_tensors_are_torchs_of_a_seed():
    def run(t):
        b = importlib.import_module(f"{t.__name__}.utils.benchmark")

        def refused(call):
            with pytest.raises((AssertionError, ValueError)) as error:
                call()
            return error.typename, str(error.value)

        k = b.FuzzedParameter("k", 4, 16, "loguniform")
        n = [b.FuzzedParameter("n", 2, 9, "uniform"), b.FuzzedParameter("f", 0.0, 1.0, "uniform")]
        dims = b.FuzzedParameter("d", 1, 3, "uniform", strict=True)
        x = b.FuzzedTensor("x", ("k", "n", 3), ("d",), 0.3, 8, dim_parameter="d")
        y = b.FuzzedTensor("y", ("n",), dtype=t.int32)
        fuzzer = b.Fuzzer([k, n, dims], [x, y], [lambda p: p["k"] < 14], seed=3)
        drawn = [
            (p, q["x"]["order"].tolist(), tuple(v["x"].shape), v["x"].stride(), v["y"].tolist())
            for v, q, p in fuzzer.take(8)
        ]
        sparse = [b.FuzzedParameter("density", 0.1, 0.3, "uniform")]
        sparse += [b.FuzzedParameter(name, 0, 1, "uniform") for name in ("coalesced", "sparse_dim")]
        z = b.FuzzedSparseTensor("z", ("k", 5), density="density", coalesced="coalesced")
        taken = b.Fuzzer([k, sparse], [z], seed=1).take(3)
        places = [
            (v["z"].coalesce().indices().tolist(), q["z"]["is_coalesced"]) for v, q, _ in taken
        ]
        large = b.FuzzedTensor("x", ("k",), min_elements=99)
        loop = {"a": b.ParameterAlias("b"), "b": b.ParameterAlias("a")}
        return drawn, fuzzer.rejection_rate, places, [refused(call) for call in (
            lambda: b.FuzzedParameter("k", distribution="gauss"),
            lambda: b.FuzzedParameter("k", distribution={1: -0.5, 2: 1.5}),
            lambda: b.FuzzedParameter("k", 1, distribution={1: 0.5, 2: 1.5}),
            lambda: b.Fuzzer([k], [b.FuzzedTensor("k", ("k",))]),
            lambda: next(b.Fuzzer([k], [large], seed=1).take(1)),
            lambda: b.Fuzzer._resolve_aliases(loop),
        )]  # fmt: skip

    agree(run)


def test_counts_of_functions_add_scale_and_print_as_torchs():
    def run(t):
        b = importlib.import_module(f"{t.__name__}.utils.benchmark")
        rows = (b.FunctionCount(7 * i - 20, f"a{i % 3}.c:f{i * 'xyzuv'}") for i in range(25))
        counts = b.FunctionCounts(tuple(rows), inclusive=False)
        with pytest.raises(AssertionError, match="Cannot merge inclusive and exclusive"):
            counts + b.FunctionCounts((), inclusive=True)
        tables = [
            counts, counts * 2, counts - counts, counts + counts, counts[2:4],
            counts.transform(lambda name: name[:2]), counts.filter(lambda name: "a1" in name),
        ]  # fmt: skip
        return [str(table).splitlines()[1:] for table in tables], counts.denoise().sum()

    agree(run)


def test_kernels_of_operators_are_called_by_keys():
    def run(t):
        c = importlib.import_module(f"{t.__name__}._C")
        keys = c.DispatchKeySet(c.DispatchKey.CPU)
        kernel = t.library.get_kernel("aten::add.Tensor", "CPU")
        x = t.ones(2, requires_grad=True)
        told = [kernel.call_boxed(keys, t.ones(2), t.ones(2), alpha=3)]
        told += [
            t.library.get_kernel(op, key).call_boxed(keys, x).requires_grad
            for op, key in (
                (t.ops.aten.t.default, c.DispatchKey.AutogradCPU), ("aten::cos", "AutogradCPU"),
            )
        ]  # fmt: skip
        for op, key in (
            ("aten::nope", "CPU"), ("sin", "CPU"), (3, "CPU"),
            (t.ops.aten.sin.default, "Foo"), ("aten::sin", "CompositeImplicitAutograd"),
        ):  # fmt: skip
            try:
                t.library.get_kernel(op, key)
            except (RuntimeError, ValueError) as error:
                told.append((type(error).__name__, str(error)))
        with pytest.raises(TypeError, match="incompatible function arguments"):
            kernel.call_boxed(t.ones(2), t.ones(2))
        return told

    agree(run)


def test_comparisons_and_capsules_refuse_what_torchs_do():
    def run(t):
        told = []
        for call in (
            lambda: t.testing.assert_close([1, "a"], [1, "b"]),
            lambda: t.testing.assert_close({"k": ("a",)}, {"k": ("a",)}),
            lambda: t.ones(2).__dlpack__(stream=1),
        ):
            with pytest.raises((TypeError, AssertionError)) as error:
                call()
            told.append((error.typename, str(error.value)))
        return told

    agree(run)
