"""Public names beside operators: timing tables, weak references, gradients of convolutions,
and those that are there to be refused."""

import contextlib
import gc
import importlib
import io
import operator
import subprocess
import sys

import pytest

import mindtorch
from mindtorch._tensor.subclass import ASKING_OPERATORS
from tests.mindtorch.agreement import agree

REFUSED = (
    "utils.cpp_extension.load", "distributed.fsdp.sharded_grad_scaler.ShardedGradScaler",
    "distributed.checkpoint.HuggingFaceStorageReader", "distributed.optim.DistributedOptimizer",
    "distributed.rpc.init_rpc", "distributed.pipelining.ScheduleZBVZeroBubble",
    "ao.quantization.quantize_fx.convert_to_reference_fx",
    "utils.mobile_optimizer.optimize_for_mobile",
    "sparse.to_sparse_semi_structured", "utils.benchmark.CallgrindStats",
)  # fmt: skip


@pytest.mark.parametrize("path", REFUSED)
def test_a_refused_name_is_there_and_says_why(path):
    module, _, name = path.rpartition(".")
    value = getattr(importlib.import_module(f"mindtorch.{module}"), name)
    assert isinstance(value, type) == name[0].isupper()
    with pytest.raises(NotImplementedError, match=rf"torch\.(ao\.)?{path}: ..."):
        value()


def test_names_that_torch_lacks_are_not_there():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        importlib.import_module("mindtorch.export").nothing  # noqa: B018


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_gradients_of_convolutions(dims):
    def run(lib):
        grad = lib.nn.functional.grad
        x = lib.arange(2.0 * 2 * 5**dims).reshape(2, 2, *[5] * dims).sin()
        w = lib.arange(4.0 * 3**dims).reshape(2, 2, *[3] * dims).cos()
        out = getattr(lib.nn.functional, f"conv{dims}d")(x, w, stride=2, padding=1)
        of_input = getattr(grad, f"conv{dims}d_input")(x.shape, w, out, 2, 1)
        of_weight = getattr(grad, f"conv{dims}d_weight")(x, w.shape, out, 2, 1)
        w.requires_grad_()
        further = getattr(grad, f"conv{dims}d_input")(x.shape, w, out, 2, 1)
        (second,) = lib.autograd.grad(further.square().sum(), w)
        name = type(further.grad_fn).__name__
        return of_input.sum(), of_weight.sum(), of_input[0, 1].contiguous(), second.sum(), name

    agree(run, digits=3)


@pytest.mark.parametrize("name", ["causal_upper_left", "causal_lower_right"])
def test_causal_masks_by_their_shape(name):
    def run(lib):
        make = getattr(importlib.import_module(f"{lib.__name__}.nn.attention.bias"), name)
        q = lib.arange(24.0).reshape(1, 2, 3, 4).sin()
        k = lib.arange(40.0).reshape(1, 2, 5, 4).cos()
        attend = lib.nn.functional.scaled_dot_product_attention
        shown = str(make(3, 5)) if lib is mindtorch else None
        return attend(q, k, k, attn_mask=make(3, 5)), shown is None or "True" in shown

    assert agree(lambda lib: run(lib)[0], digits=4)
    assert run(mindtorch)[1]


def test_weak_dictionaries_tell_tensors_apart_by_identity():
    def run(lib):
        weak = importlib.import_module(f"{lib.__name__}.utils.weak")
        table = weak.WeakTensorKeyDictionary()
        a, b = lib.ones(2), lib.ones(2)
        table[a], table[b] = 1, 2
        sizes = [len(table), table[a], table[b], a in table, lib.ones(2) in table]
        reference = weak.TensorWeakRef(b)
        alive = reference() is b
        del b
        gc.collect()
        return *sizes, alive, reference() is None, len(table), list(table.values())

    agree(run)


def measurement(benchmark, times, **words):
    spec = benchmark.TaskSpec("x + y", "pass", label="Add", **words)
    return benchmark.Measurement(10, [t * 10 for t in times], spec)


def benchmark_of(lib):
    return importlib.import_module(
        f"{lib.__name__}.utils.benchmark" + (".utils.common" if lib is not mindtorch else "")
    )


def test_a_measurement_says_what_torchs_says():
    def run(lib):
        one = measurement(benchmark_of(lib), [3e-6, 3.1e-6, 2.9e-6, 3.3e-6, 9e-6])
        text = repr(one).split("\n", 1)[1]
        return one.median, one.mean, one.iqr, one.significant_figures, one.has_warnings, text

    agree(run, digits=6)


@pytest.mark.parametrize("trimmed", [False, True])
def test_a_table_is_torchs(trimmed):
    def run(lib):
        kinds = benchmark_of(lib)
        rows = [
            measurement(kinds, [t, t * 1.01, t * 1.4], sub_label=f"n={n}", description=d,
                        num_threads=threads)
            for threads in (1, 2) for n, d, t in
            ((3, "eager", 3e-6), (3, "other", 4.25e-6), (300, "eager", 7e-5))
        ]  # fmt: skip
        table = importlib.import_module(f"{lib.__name__}.utils.benchmark").Compare(rows)
        if trimmed:
            table.trim_significant_figures()
            table.highlight_warnings()
            table.colorize()
        return str(table)

    agree(run)


def test_a_timer_runs_its_statement():
    from mindtorch.utils.benchmark import Timer

    calls = []
    timer = Timer("calls.append(1)", globals={"calls": calls}, label="Append")
    assert timer.timeit(50).number_per_run == 50
    assert len(calls) == 52
    blocks = timer.blocked_autorange(min_run_time=0.001)
    assert len(blocks.times) >= 1
    assert blocks.median > 0
    with pytest.raises(NotImplementedError, match="counts no instructions"):
        timer.collect_callgrind()


def test_signatures_tell_the_array_apis_names():
    parameters = mindtorch.argmax.__doc__.partition("\n")[0]
    assert "axis=" in parameters
    assert "keepdims=" in parameters
    assert "axis=" in mindtorch.fft.fft.__doc__.partition("\n")[0]


# Names whose kind differs from torch's, by reason.
OTHER_KINDS = {
    "switches in Python, bound when mindtorch is imported, before C parts are loaded": """
        autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache
        get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype get_default_dtype
        is_anomaly_check_nan_enabled is_anomaly_enabled is_autocast_cache_enabled
        is_autocast_cpu_enabled is_autocast_enabled is_grad_enabled is_inference_mode_enabled
        promote_types set_autocast_cache_enabled set_autocast_cpu_dtype set_autocast_cpu_enabled
        set_autocast_dtype set_autocast_enabled set_autocast_gpu_dtype""",
    "no rows: layouts and quantized tensors are Python over rows": """
        dequantize hspmm int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points
        q_scale q_zero_point quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic
        smm sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor
        sparse_csc_tensor sparse_csr_tensor sspaddmm""",
    "slots of types and static methods": """
        Tensor.__dir__ Tensor.__hash__ Tensor.__new__ Tensor._make_subclass
        Tensor._make_wrapper_subclass""",
}
KINDS = {"builtin_function_or_method", "function", "method_descriptor"}


def test_functions_and_methods_are_of_torchs_kinds():
    torch = pytest.importorskip("torch")
    other = {}
    for space in ("", "nn.functional", "linalg", "fft", "special", "Tensor"):
        ours, theirs = (operator.attrgetter(space)(m) if space else m for m in (mindtorch, torch))
        for name in dir(ours):
            if name in ("__doc__", "__builtins__") or (space != "Tensor" and name[0] == "_"):
                continue
            code = getattr(getattr(ours, name, None), "__code__", None)
            if code is not None and code.co_filename.endswith("refusals.py"):
                continue  # not there: earlier tests may have asked for it
            kinds = [type(getattr(m, name, None)).__name__ for m in (ours, theirs)]
            if kinds[0] != kinds[1] and kinds[1] in KINDS:
                other[f"{space}.{name}".lstrip(".")] = kinds
    assert other.keys() == {n for names in OTHER_KINDS.values() for n in names.split()}, other


def test_operators_bear_torchs_names_whether_a_class_was_asked_or_not():
    torch = pytest.importorskip("torch", reason="torch is the oracle of names")
    (mindtorch.eye(2).to_sparse().coalesce() // 2).values()
    ours, theirs = (
        {n: getattr(m.Tensor, n).__name__ for n in sorted(ASKING_OPERATORS)}
        for m in (mindtorch, torch)
    )
    assert ours == theirs


def test_functions_of_c_do_not_bind_and_are_pickled_and_copied_by_name():
    pytest.importorskip("torch")
    names = (
        "tanh", "conv2d", "nn.functional.gelu", "linalg.inv", "fft.fft", "special.expit",
        "Tensor.add", "Tensor.relu_", "Tensor.numel",
    )  # fmt: skip
    program = """
import copy, operator, pickle, torch
def described(f):
    same = pickle.loads(pickle.dumps(f)) is f, copy.deepcopy(f) is f
    home = getattr(f, "__module__", 0), f.__qualname__, f.__text_signature__
    return repr(f).partition(" at 0x")[0], same, home
print([described(operator.attrgetter(name)(torch)) for name in NAMES])
class Module:
    activation, linear = torch.tanh, torch.nn.functional.linear
print(Module().activation(torch.ones(2)), Module().linear(torch.ones(1, 2), torch.ones(3, 2)))
for wrong in ("torch.Tensor.add(1, 2)", "torch.Tensor.add()"):
    try: eval(wrong)
    except TypeError as error: print(error)
""".replace("NAMES", repr(names))
    theirs = io.StringIO()
    with contextlib.redirect_stdout(theirs):
        exec(program, {})
    ours = [sys.executable, "-c", f"import mindtorch.as_torch\n{program}"]
    assert subprocess.run(ours, capture_output=True, text=True).stdout == theirs.getvalue()
