"""What programs that others might have written have found, each as small as it gets."""

import contextlib
import io

import pytest
from agreement import agree

import mindtorch


def test_an_empty_file_ends_before_it_begins():
    agree(lambda t: t.load(io.BytesIO(b"")), text=False)


def test_a_prefix_is_taken_off_the_keys_of_a_state():
    def run(t):
        state = t.nn.Sequential(t.nn.Linear(1, 1)).state_dict(prefix="module.")
        plain = {"module.a": 1, "b": 2, "module.module.c": 3}
        for states in (state, plain):
            t.nn.modules.utils.consume_prefix_in_state_dict_if_present(states, "module.")
        return list(state), sorted(state._metadata), plain

    agree(run)


@pytest.mark.parametrize(("low", "high"), [(1.0, 0.0), ([1.0, 0.0], [0.0, 1.0])], ids=str)
def test_bounds_of_a_uniform_are_held_to_each_other(low, high):
    agree(lambda t: t.distributions.Uniform(t.tensor(low), t.tensor(high), validate_args=True))


def test_a_uniform_tells_its_constraints():
    agree(lambda t: repr(t.distributions.Uniform(0.0, 1.0).arg_constraints))


def test_an_expanded_uniform_keeps_its_bounds():
    def run(t):
        wide = t.distributions.Uniform(t.tensor([0.0, 1.0]), t.tensor([2.0, 3.0])).expand((2, 2))
        return wide.low, wide.mean, wide.log_prob(t.ones(2, 2))

    agree(run)


def test_an_exit_stack_takes_a_device():
    def run(t):
        with contextlib.ExitStack() as stack:
            shown = stack.enter_context(t.device("meta"))
            made = t.ones(2).device
        return str(shown), str(made), str(t.ones(2).device)

    agree(run)


def test_batches_of_a_sampler_without_a_length_are_loaded():
    def run(t):
        class Pairs(t.utils.data.Sampler):
            def __iter__(self):
                yield from ([0, 2], [1])

        loader = t.utils.data.DataLoader(t.arange(3), batch_sampler=Pairs())
        batches = [b.tolist() for b in loader]
        with contextlib.suppress(TypeError):
            batches.append(len(iter(loader)))
        return batches

    agree(run)


def test_averages_of_models_take_whole_buffers():
    def run(t):
        averages = t.optim.swa_utils
        t.manual_seed(0)
        model = t.nn.Sequential(t.nn.Linear(2, 2), t.nn.BatchNorm1d(2))
        functions = [averages.get_ema_multi_avg_fn(0.5), None]
        models = [
            averages.AveragedModel(model, multi_avg_fn=f, use_buffers=True) for f in functions
        ]
        for _ in range(3):
            model(t.ones(4, 2))
            for average in models:
                average.update_parameters(model)
        return [list(average.state_dict().values()) for average in models]

    agree(run, digits=5)


def test_an_instance_of_a_function_is_refused():
    def run(t):
        class Same(t.autograd.Function):
            pass

        with pytest.warns(DeprecationWarning, match="should not be instantiated"):
            instance = Same()
        return instance(t.ones(1))

    agree(run)


def test_a_parametrized_parameter_stays_the_optimizer_s():
    def run(t):
        class Twice(t.nn.Module):
            def forward(self, x):
                return x * 2

            def right_inverse(self, x):
                return x / 2

        parametrize = t.nn.utils.parametrize
        layer = t.nn.Linear(2, 1)
        weight = layer.weight
        t.nn.init.ones_(weight)
        parametrize.register_parametrization(layer, "weight", Twice())
        steps = [layer.parametrizations.weight.original is weight, layer.weight.tolist()]
        parametrize.register_parametrization(layer, "weight", Twice())
        steps += [layer.weight.tolist(), weight.tolist()]
        layer.weight = t.full((1, 2), 8.0)
        steps.append(weight.tolist())
        parametrize.remove_parametrizations(layer, "weight")
        return [*steps, layer.weight is weight, layer.weight.tolist()]

    agree(run)


@pytest.mark.parametrize("change", ["shape", "dtype", "list"])
@pytest.mark.parametrize("further", [False, True])
def test_a_parametrization_that_changes_the_tensor_is_refused(change, further):
    def run(t):
        class Same(t.nn.Module):
            def forward(self, x):
                return x

        class Other(t.nn.Module):
            def forward(self, x):
                return {"shape": lambda: x[:1], "dtype": x.double, "list": lambda: [x]}[change]()

        layer = t.nn.Linear(2, 2)
        if further:
            t.nn.utils.parametrize.register_parametrization(layer, "weight", Same())
        try:
            t.nn.utils.parametrize.register_parametrization(layer, "weight", Other())
        except ValueError as error:
            return str(error)

    agree(run)


@pytest.mark.parametrize(
    "draw",
    [
        lambda t: t.rand(2, device="cpu"),
        lambda t: t.randperm(3, device="cpu"),
        lambda t: t.ones(2, device="cpu").bernoulli_(0.5),
        lambda t: t.poisson(t.ones(2, device="cpu")),
        lambda t: t.get_rng_state(),
        lambda t: t.Generator().manual_seed(3).get_state(),
    ],
)
def test_a_draw_on_cpu_stays_there_whatever_the_default_device(draw):
    def run(t):
        t.manual_seed(0)
        with t.device("meta"):
            result = draw(t)
        return str(result.device), result

    agree(run)


OPERATORS = {
    "slice": lambda x: x[0:1],
    "element": lambda x: x[0],
    "mask": lambda x: x[x > 1],
    "write": lambda x: x.__setitem__(0, 5.0),
    "length": len,
    "contains": lambda x: 3.0 in x,
    "reversed": reversed,
    "float": lambda x: float(x.sum()),
    "truth": lambda x: bool(x.sum()),
    "format": lambda x: format(x.sum(), ".2f"),
    "from a number": lambda x: 1 - x,
    "power of a number": lambda x: 2**x,
    "a number by it": lambda x: 2 / x,
    "whole quotient": lambda x: x // 2,
}


@pytest.mark.parametrize("name", OPERATORS)
def test_a_subclass_sees_the_operators_of_python(name):
    def run(t):
        calls = []

        class Logged(t.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                calls.append(func.__name__)
                return super().__torch_function__(func, types, args, kwargs)

        x = t.tensor([1.0, 2.0, 3.0]).as_subclass(Logged)
        try:
            result = OPERATORS[name](x)
        except TypeError as error:
            result = str(error)
        return calls, type(result).__name__

    agree(run)


def test_what_no_class_takes_is_refused_in_torch_s_words():
    def run(t):
        class Closed:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return NotImplemented

        texts = []
        for call in (t.sin, lambda x: t.add(x, t.ones(1)), t.nn.functional.softplus, t.stack):
            try:
                call(Closed())
            except TypeError as error:
                texts.append(str(error).split("<")[0])
        return texts[:2]

    agree(run)


SYMBOLS = [
    "add", "radd", "iadd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv",
    "rfloordiv", "mod", "rmod", "pow", "rpow", "matmul", "rmatmul", "and", "rand", "or", "xor",
    "lshift", "rlshift", "rrshift", "eq", "ne", "lt", "le", "gt", "ge", "ipow", "imul",
]  # fmt: skip


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_an_operator_asks_the_other_operand_after_a_type_error(symbol):
    def run(t):
        class Refusing(t.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                raise TypeError("not these")

        x = t.ones(2).as_subclass(Refusing)
        return getattr(t.Tensor, f"__{symbol}__")(x, 2) is NotImplemented

    agree(run)


@pytest.mark.parametrize("weights_only", [True, False])
def test_an_empty_file_is_said_to_be_empty(weights_only):
    agree(lambda t: t.load(io.BytesIO(b""), weights_only=weights_only))


def _attention_of(t, kinds):
    q, k, v = (t.ones(2, 4, dtype=getattr(t, kind)) for kind in kinds)
    return t.nn.functional.scaled_dot_product_attention(q, k, v).dtype


@pytest.mark.parametrize("kinds", [
    ("float32", "float16", "float32"), ("float16", "float16", "bfloat16"),
    ("float64", "float32", "float32"), ("float16",) * 3,
], ids="-".join)  # fmt: skip
@pytest.mark.parametrize("autocast", [False, True], ids=["plain", "autocast"])
def test_attention_takes_one_dtype(kinds, autocast):
    def run(t):
        with t.autocast("cpu", t.bfloat16, enabled=autocast):
            return str(_attention_of(t, kinds))

    agree(run)


@pytest.mark.parametrize("dtype", ["int32", "bool", "complex64", "float16", "float64"])
@pytest.mark.parametrize("weight", ["none", "float32", "float16", "own"])
@pytest.mark.parametrize("bias", ["none", "float32", "float16"])
@pytest.mark.parametrize("name", ["layer_norm", "group_norm"])
def test_norms_refuse_parameters_of_other_dtypes_first(name, dtype, weight, bias):
    def run(t):
        kinds = {"none": None, "own": getattr(t, dtype), "float32": t.float32, "float16": t.half}
        w, b = (k and t.ones(3, dtype=k) for k in (kinds[weight], kinds[bias]))
        x = t.ones(2, 3, dtype=getattr(t, dtype))
        over = (3,) if name == "layer_norm" else 1
        return str(getattr(t.nn.functional, name)(x, over, w, b).dtype)

    agree(run)


@pytest.mark.parametrize("equation", [
    "ij->", "ij->i", "ij->ji", "ij->ij", "ii->", "ii->i", "ij,jk->ik", "i,i->", "i,j->ij",
    "i,j->ji", "ij,j->i", "ij,ij->", "ij,ij->ij", "ij,ij->i", "bij,jk->bik", "bij->ib",
    "...ij->...ji", "bij,bkj->bik", "bij,bkj->kbi", "ij,kjl->kli", "ij,jk,kl->il",
    "ij,jk,kl->li", "i,ij,j->", "ij,kj->ki", "bi,bo,oi->b", "ij,k->kij", "abij,cbj->aci",
    "abij,cbj->cai",
])  # fmt: skip
def test_einsum_names_its_node_and_lays_its_result_out_as_torch(equation):
    def run(t):
        specs = equation.partition("->")[0].split(",")
        shapes = [[3] * (len(s.replace("...", "b"))) for s in specs]
        operands = [t.ones(s).requires_grad_() for s in shapes]
        out = t.einsum(equation, *operands)
        return out.grad_fn.name(), out.stride(), out.detach()

    agree(run)


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "bool", "complex64", "float16"])
def test_deterministic_algorithms_fill_memory_that_nobody_wrote(dtype):
    def run(t):
        kind = getattr(t, dtype)
        t.use_deterministic_algorithms(True)
        try:
            empty = [t.empty(2, dtype=kind), t.empty_like(t.ones(2, dtype=kind)),
                     t.empty_strided((2,), (2,), dtype=kind)]  # fmt: skip
        finally:
            t.use_deterministic_algorithms(False)
        mode = t.get_deterministic_debug_mode()
        return repr(empty), repr(mode), t.utils.deterministic.fill_uninitialized_memory

    agree(run)


def test_whether_memory_is_filled_is_a_setting():
    def run(t):
        settings = t.utils.deterministic
        settings.fill_uninitialized_memory = False
        off = settings.fill_uninitialized_memory
        settings.fill_uninitialized_memory = True
        return off, settings.fill_uninitialized_memory, setattr(
            settings, "fill_uninitialized_memory", 3
        )  # fmt: skip

    agree(run)


def test_a_profiler_that_is_off_is_none_and_tables_know_their_columns():
    def run(t):
        with t.autograd.profiler.profile(enabled=False) as off:
            t.ones(2)
        with t.profiler.profile() as profiler:
            t.ones(2) + 1
        profiler.key_averages().table(sort_by="device_time_total")
        return off, profiler.key_averages().table(sort_by="nothing")

    agree(run)


def test_a_range_of_a_profiler_has_a_name():
    agree(lambda t: t.profiler.record_function(3).__enter__(), text=False)


def test_overloads_of_operators_that_take_numbers():
    agree(lambda t: [getattr(t.ops.aten, n).overloads()[:2] for n in ("add", "mul", "eq")])


def test_a_prefix_of_keys_is_text():
    agree(lambda t: t.nn.Module().state_dict(prefix=2))


LAPACK = {
    "svd": lambda t, a: t.linalg.svd(a), "older svd": lambda t, a: t.svd(a),
    "reduced": lambda t, a: t.linalg.svd(a, full_matrices=False),
    "qr": lambda t, a: t.linalg.qr(a), "low rank": lambda t, a: t.pca_lowrank(a, q=1),
    "eigh": lambda t, a: t.linalg.eigh(a @ a.mT), "lu": lambda t, a: t.linalg.lu(a),
    "least squares": lambda t, a: t.linalg.lstsq(a, a[..., :2])[:1],
}  # fmt: skip


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (2, 5, 3), (2, 3, 5)], ids=str)
@pytest.mark.parametrize("name", LAPACK)
def test_factors_of_matrices_lie_in_memory_as_torchs(name, shape):
    def run(t):
        a = t.arange(float(t.Size(shape).numel())).reshape(shape).sin()
        return [(tuple(x.shape), x.stride()) for x in LAPACK[name](t, a)]

    agree(run)


def test_code_of_graphs_calls_functions_by_torchs_names():
    def run(t):
        f = t.nn.functional

        def forward(x):
            x = f.max_pool2d(f.relu(f.conv2d(x, t.ones(1, 1, 2, 2))), 2)
            x = f.softplus(f.gelu(f.linear(x, t.ones(3, 2)))) + f.adaptive_avg_pool2d(x, 1)
            x = t.einsum("bchw->bcwh", f.dropout(x, 0.5, False))
            return f.layer_norm(x, (3,)) + f.avg_pool2d(f.prelu(x, t.ones(1)), 1) + t.tanh(x)

        graph = t.fx.symbolic_trace(forward)
        called = [t.fx.node._get_qualified_name(n.target) for n in graph.graph.nodes
                  if n.op == "call_function" and n.target.__name__ != "add"]  # fmt: skip
        return called, "max_pool2d = torch.nn.functional.max_pool2d(" in graph.code

    agree(run)


def test_a_backend_of_a_compiler_has_a_name_of_torchs():
    agree(lambda t: t.compile(lambda x: x, backend="no_such_backend"))


def test_profilers_tell_shapes_of_inputs():
    def run(t):
        layer = t.nn.Linear(3, 4)
        with t.profiler.profile(record_shapes=True) as profiler:
            for n in (2, 5, 2):
                t.nn.functional.silu(layer(t.ones(n, 3)))
        averages = profiler.key_averages(group_by_input_shape=True)
        names = ("aten::linear", "aten::silu")
        return sorted((e.key, e.count, str(e.input_shapes)) for e in averages if e.key in names)

    agree(run)


def test_lists_of_parameters_name_the_device_as_torch_does():
    def text(t, device):
        return repr(t.nn.ParameterList([t.ones(2, 3, device=device)]))

    plain = text(mindtorch, "cpu")
    agree(lambda t: text(t, "cpu"))
    agree(lambda t: text(t, "meta"))
    assert text(mindtorch, "npu") == plain.replace("2x3]", "2x3 (npu:0)]")
