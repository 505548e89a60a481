"""Native cpu kernels: every law of every row that has one, and what the switch promises."""

import dis
import importlib.util
import multiprocessing
import threading
import types
from pathlib import Path

import every_sample
import numpy as np
import pytest
from every_sample import rows_of
from mindtorch_npu import laws

import mindtorch
from mindtorch._backends.cpu import native
from mindtorch._dispatch.plans import references

pytestmark = pytest.mark.skipif(native.lib is None, reason="the native kernels were not built")


def bound(op, sample):
    """Rows with a call; those that get no native kernel are told apart when run."""
    return op.kernels.aclnn and not sample.error


@pytest.fixture
def everywhere(monkeypatch):
    """Native kernels wherever one fits; gives the rows that got one."""
    rows = set()
    given = native._Kernels.__init__

    def noting(self, binding, args, first):
        given(self, binding, args, first)
        rows.add(binding.op.name)

    monkeypatch.setattr(native._Kernels, "__init__", noting)
    with native.flags(enabled=True, everywhere=True):
        yield rows


def apply(rows, table, op, cases, *args):
    every_sample.apply(table, op, cases, *args)
    if not rows:
        pytest.skip(f"{op.name} has no native kernel for these samples")


@pytest.mark.parametrize(("op", "cases"), list(rows_of(laws.ORACLE_LAWS, bound)))
def test_laws_hold_against_torch(everywhere, op, cases):
    torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")
    apply(everywhere, laws.ORACLE_LAWS, op, cases, torch)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("op", "cases"), list(rows_of(laws.LAWS, bound)))
def test_laws_hold(everywhere, op, cases):
    apply(everywhere, laws.LAWS, op, cases)


def measured():
    """benchmarks/native.py: the cases from which the table of kernel selection is made."""
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "native.py"
    spec = importlib.util.spec_from_file_location("native_benchmark", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BENCHMARK = measured()
MEASURED = {**BENCHMARK.CASES, **BENCHMARK.pointwise()}
# Ties of topk fall as torch's in native kernels, in order in numpy's.
OTHERWISE = ("dropout", "multinomial", "topk")
DETERMINISTIC = {n: case for n, case in MEASURED.items() if n not in OTHERWISE}
CLOSE = {"float64": 1e-9, "float32": 3e-5, "float16": 4e-3, "bfloat16": 3e-2}


def as_arrays(result):
    tensors = result if isinstance(result, tuple | list) else (result,)
    return [t.detach().double().numpy() for t in tensors]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", DETERMINISTIC)
def test_native_equals_numpy_at_the_sizes_that_are_measured(name):
    """Samples are small: here rows are long, and pieces go to several threads."""
    for dtype in BENCHMARK.DTYPES:
        try:
            with native.flags(enabled=False):
                call = DETERMINISTIC[name](1 << 15, dtype)
                expected = as_arrays(call())
        except (RuntimeError, TypeError, NotImplementedError, ValueError):
            continue  # torch refuses the dtype
        with native.flags(enabled=True, everywhere=True):
            got = as_arrays(call())
        near = CLOSE.get(dtype, CLOSE["float32"])
        for a, b in zip(got, expected, strict=True):
            largest = np.abs(b[np.isfinite(b)]).max(initial=1)
            np.testing.assert_allclose(a, b, rtol=near, atol=near * largest / 10, err_msg=dtype)


def test_the_public_switch():
    assert mindtorch.backends.native.is_available()
    with mindtorch.backends.native.flags(enabled=False):
        assert not mindtorch.backends.native.is_enabled()
    assert mindtorch.backends.native.is_enabled() == native.switch.enabled


def test_indices_out_of_range_raise_what_numpy_kernels_raise(everywhere):
    a = mindtorch.arange(12.0).reshape(3, 4)
    at = mindtorch.full((3, 4), 7)
    with pytest.raises((IndexError, RuntimeError), match="out of"):
        a.gather(1, at)
    with pytest.raises((IndexError, RuntimeError), match="out of"):
        a.index_add(0, mindtorch.tensor([5]), a[:1])
    assert a.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]


def test_the_switch_takes_hold_at_once():
    a = mindtorch.linspace(-4, 4, 4096)
    calls = []

    real = native.lib

    source = mindtorch.nn.functional.gelu
    with pytest.MonkeyPatch.context() as patch:
        native._maker_of.cache_clear()
        patch.setattr(native, "lib", _Spy(real, calls))
        with native.flags(enabled=False):
            plain = source(a)
            assert not calls
        with native.flags(enabled=True):
            mine = source(a)
            assert len(calls) == 1
            with references():
                source(a)
            assert len(calls) == 1
    native._maker_of.cache_clear()
    np.testing.assert_allclose(mine.numpy(), plain.numpy(), rtol=1e-5, atol=1e-6)


class _Spy:
    """The library, which notes each run of a kernel."""

    def __init__(self, real, calls):
        self._real, self._calls = real, calls

    def __getattr__(self, name):
        function = getattr(self._real, name)
        if not name.startswith("mtk_run"):
            return function

        def noting(*args):
            self._calls.append(args)
            return function(*args)

        return noting


def test_one_plan_serves_threads_at_once(everywhere):
    inputs = [mindtorch.full((1 << 14,), float(i)) for i in range(4)]
    wrong = []

    def work(x, value):
        for _ in range(3000):
            if (x + x)[-1].item() != 2 * value:
                wrong.append(value)

    workers = [threading.Thread(target=work, args=(x, i)) for i, x in enumerate(inputs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


def _summed(queue):
    queue.put(mindtorch.ones(1 << 18).bfloat16().float().sum().item())


def test_a_forked_child_goes_on(everywhere):
    before = mindtorch.get_num_threads()
    mindtorch.set_num_threads(2)
    try:
        assert mindtorch.ones(1 << 18).sum().item() == 1 << 18
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        child = context.Process(target=_summed, args=(queue,))
        child.start()
        assert queue.get(timeout=60) == 1 << 18
        child.join()
    finally:
        mindtorch.set_num_threads(before)


@pytest.mark.parametrize("source", ["x + x", "x.to(torch.float16)", "x.softmax(-1)", "x.mul_(2)"])
def test_a_storage_that_was_made_smaller_is_not_read(everywhere, source):
    x = mindtorch.ones(4096)
    eval(source, {"x": x, "torch": mindtorch})  # its plan is there
    x.untyped_storage().resize_(16)
    with pytest.raises(RuntimeError, match=r"no host array|no memory"):
        eval(source, {"x": x, "torch": mindtorch})


@pytest.mark.parametrize("source", ["x.mul_(2)", "x.t().copy_(y)", "x.copy_(y.half())"])
def test_memory_that_is_only_to_be_read_stays_as_it_is(everywhere, source):
    held = np.ones((64, 64), np.float32)
    held.flags.writeable = False
    x, y = mindtorch.from_numpy(held), mindtorch.full((64, 64), 3.0)
    with pytest.raises((RuntimeError, ValueError), match="read-only"):
        eval(source, {"x": x, "y": y})
    assert (held == 1).all()


def test_a_target_may_be_an_operand(everywhere):
    a = mindtorch.arange(8.0)
    a.mul_(a)
    assert a.tolist() == [0, 1, 4, 9, 16, 25, 36, 49]
    a[::2].add_(a[1::2])
    assert a.tolist() == [1, 1, 13, 9, 41, 25, 85, 49]


# Rows whose numpy kernels raise, and what their native ones do instead.
REVIEWED = {
    **dict.fromkeys(("embedding", "gather", "index", "index_add", "index_select", "scatter.src",
                     "scatter_add", "index_fill", "scatter.value", "_scatter_reduce"),
                    "stop at an index out of range, and numpy's raises"),
    **dict.fromkeys(("_linalg_cholesky", "linalg_inv"), "give the info that the rows refuse by"),
    **dict.fromkeys(("col2im", "im2col", "reflection_pad2d", "_searchsorted"),
                    "are inferred first, which refuses"),
    **dict.fromkeys(native._REFUSED_BY_NUMPY, "are not taken where numpy's would raise"),
    "nan_to_num": "the dtypes of arrays that numpy's refuses are those of no tensor",
}  # fmt: skip


def callees(function, depth=4):
    """A kernel's function and those of this library that it names."""
    if not isinstance(function, types.FunctionType) or not depth:
        return set()
    if not (function.__module__ or "").startswith("mindtorch"):
        return set()
    names = {n for code in codes(function.__code__) for n in code.co_names}
    inner = [function.__globals__.get(n) for n in names]
    inner += [cell.cell_contents for cell in function.__closure__ or ()]
    return {function}.union(*(callees(f, depth - 1) for f in inner))


def codes(code):
    return [code, *(c for k in code.co_consts if isinstance(k, types.CodeType) for c in codes(k))]


def raises(function):
    return any(
        i.opname == "RAISE_VARARGS"
        for c in codes(function.__code__)
        for i in dis.get_instructions(c)
    )


def test_what_numpy_kernels_refuse_was_looked_at():
    """A native kernel that computes what numpy's refuses would hide torch's error."""
    rows = [laws.OPS[name] for name in {n.partition(" ")[0] for n in native.FASTER_FROM}]
    refusing = {
        op.name
        for op in rows
        if any(
            raises(f) for kernel in (op.kernels.cpu, op.kernels.cpu_plain) for f in callees(kernel)
        )
    }
    assert refusing - set(REVIEWED) == set()


@pytest.mark.parametrize(
    "source",
    [
        "torch.arange(4) % torch.zeros(4, dtype=torch.long)",
        "torch.fmod(torch.arange(4), torch.zeros(4, dtype=torch.long))",
        "torch.arange(4) // torch.zeros(4, dtype=torch.long)",
        "F.binary_cross_entropy(torch.full((4,), 5.0), torch.ones(4))",
        "F.gelu(torch.ones(4), approximate='foo')",
        "F.hardtanh(torch.ones(4, dtype=torch.uint8), -1, 1)",
        "F.threshold(torch.ones(4, dtype=torch.int32), 0, 1e12)",
        "F.fold(torch.ones(1, 4, 3), (4, 4), (0, 2))",
        "F.pad(torch.ones(1, 1, 3, 3), (3, 3, 3, 3), mode='reflect')",
        "torch.searchsorted(torch.ones(2, 3), torch.ones(3, 3))",
        "torch.ones(3, 3).index_fill(0, torch.tensor([5]), 1.0)",
        "torch.ones(3, 3).scatter(0, torch.tensor([[7]]), 1.0)",
        "torch.ones(3).scatter_reduce(0, torch.tensor([9]), torch.ones(1), 'sum')",
    ],
)
def test_native_kernels_hide_no_error(everywhere, source):
    torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")
    with pytest.raises(Exception) as theirs:  # noqa: PT011 - whatever torch raises
        eval(source, {"torch": torch, "F": torch.nn.functional})
    with pytest.raises(type(theirs.value)) as mine:
        eval(source, {"torch": mindtorch, "F": mindtorch.nn.functional})
    assert str(mine.value).splitlines()[0] == str(theirs.value).splitlines()[0]


LINES = [
    "x.median(0)", "x.nanmedian(1)", "x.median()", "x.nanmedian()", "x.mode(1)", "whole.mode(0)",
    "whole.median(1, True)", "x[:, ::2].mode(-1, True)", "x.logcumsumexp(1)", "F.pdist(x)",
    "F.pdist(x, 3.0)", "F.pdist(x, 0.0)", "F.pdist(x.t(), torch.inf)",
    "torch.cdist(x, x[:2], 3.0)", "torch.cdist(x.t(), x.t()[::2], torch.inf)",
    "torch.cdist(x.expand(2, 4, 7), x[None, 1:], 0.0)",
    "torch.func.grad(lambda x: F.multilabel_margin_loss(x, whole % 9 - 2))(x)",
    "torch.linalg.householder_product(*torch.geqrf(x.t()))",
    "torch.ormqr(*torch.geqrf(x), x, True, True)", "torch.ormqr(*torch.geqrf(x), x.t(), False)",
    "torch.linalg.householder_product(*torch.geqrf(x.t() * (1 + 2j)))",
    "F.multi_margin_loss(x, whole[:, 0] % 7, 2, 0.5, x[0], reduction='none')",
    "F.multi_margin_loss(x.t()[2], whole[0, 0])",
    "F.multilabel_margin_loss(x, whole % 9 - 2, reduction='none')",
    "F.fractional_max_pool2d(x[None], 2, 3, _random_samples=x[:1, :1, None].expand(1, 1, 2) % 1)",
    "F.fractional_max_pool3d(x.expand(2, 3, 4, 7), 2, (2, 2, 4), _random_samples=draws)",
    "x.index_reduce(0, whole[0] % 4, x.t()[:, :4].expand(7, 4)[:, [0] * 7], 'mean')",
    "x.index_reduce(1, whole[0] % 7, x, 'amax', include_self=False)",
    "whole.index_reduce(1, whole[0] % 7, whole, 'prod')",
    "x.index_reduce(0, whole[0, :0], x[:0], 'amin')",
    "wide.max(0)", "wide.t().min(0)", "wide.min(1, True)", "many.max(-1)", "many.t().min(-1)",
    "wide.sort(0)", "wide.t().sort(0, descending=True)", "many.sort(stable=True, dim=1)",
    "many.t().sort(1, True)", "wide.median()", "many.median()", "wide.nanmedian()",
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("source", LINES)
def test_functions_of_lines_agree_with_what_other_rows_compute(source, dtype):
    """Values that repeat, with NaN among them where it is ordered; views; whole numbers."""
    rng = np.random.default_rng(0)
    x = mindtorch.from_numpy(rng.integers(-6, 7, (4, 7)) / 4).to(getattr(mindtorch, dtype))
    if any(name in source for name in ("median", "mode", "wide")):
        x[1, 2] = x[3] = float("nan")
    names = {
        "torch": mindtorch, "F": mindtorch.nn.functional, "x": x,
        "whole": mindtorch.from_numpy(rng.integers(0, 9, (4, 7))),
        "wide": x.repeat(3, 5), "many": mindtorch.from_numpy(rng.integers(0, 9, (30, 290))),
        "draws": mindtorch.from_numpy(rng.uniform(size=(2, 3, 3))).to(x.dtype),
    }  # fmt: skip
    results = []
    for enabled in (True, False):
        with native.flags(enabled=enabled):
            try:
                results.append(as_arrays(eval(source, names)))
            except (NotImplementedError, RuntimeError) as error:
                results.append(str(error))
    if isinstance(results[1], str):
        assert results[0] == results[1]
        return
    for ours, theirs in zip(*results, strict=True):
        near = CLOSE[dtype]
        np.testing.assert_allclose(ours, theirs, rtol=near, atol=near)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("shape", [(70, 64), (2, 150, 130), (530, 515)])
def test_many_reflections_agree_with_torch(shape, dtype):
    """Those that are applied by blocks, one of which does nothing."""
    torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")
    rng = np.random.default_rng(0)
    a, other = (
        rng.standard_normal(s) + 1j * rng.standard_normal(s) for s in (shape, (*shape[:-1], 7))
    )
    a, other = (x.astype(dtype) if dtype[0] == "c" else x.real.astype(dtype) for x in (a, other))
    h, tau = (x.numpy().copy() for x in torch.geqrf(torch.from_numpy(a)))
    tau[..., 3] = 0
    near = 1e-12 if dtype == "float64" else 3e-5

    def results(lib):
        f, t, c = map(lib.from_numpy, (h, tau, other))
        yield lib.linalg.householder_product(f, t)
        yield from (lib.ormqr(f, t, c, True, adjoint) for adjoint in (False, True))

    for ours, theirs in zip(results(mindtorch), results(torch), strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=near, atol=near)


@pytest.mark.parametrize("kind", ["float32", "bool", "int64", "complex64"])
@pytest.mark.parametrize("shape", [(5000,), (70, 40), (13, 17, 19), (4096, 1), (0, 3), (4, 6)])
def test_places_of_what_is_not_zero_are_numpys(shape, kind):
    array = np.random.default_rng(0).integers(0, 3, shape).astype(kind)
    for values in (array, array.T, array[..., ::2]):
        places = mindtorch.nonzero(mindtorch.from_numpy(values)).numpy()
        np.testing.assert_array_equal(places, np.argwhere(values))


@pytest.mark.parametrize("lead", [(), (3,), (2, 3)])
@pytest.mark.parametrize("width", [1, 5, 128, 129, 400])
def test_gates_of_an_lstm_agree_with_numpys(width, lead):
    """In pieces of a line, and of gradients that are expanded."""
    aten, rng = mindtorch.ops.aten, np.random.default_rng(0)
    flow, cell, gates = (
        mindtorch.from_numpy(rng.standard_normal((*lead, n)).astype("float32"))
        for n in (width, width, 4 * width)
    )
    none, results = mindtorch.zeros(1).expand(*lead, width), []
    for enabled in (True, False):
        with native.flags(enabled=enabled):
            hidden, after = aten._lstm_gates(gates, cell)
            slopes = aten._lstm_gates_backward(flow, none, gates, cell, after)
            results.append(as_arrays((hidden, after, *slopes)))
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_places_out_of_range_are_not_read_by_functions_of_lines():
    x = mindtorch.ones(2, 3)
    for call in (
        lambda: mindtorch.nn.functional.multi_margin_loss(x, mindtorch.tensor([0, 3])),
        lambda: mindtorch.nn.functional.multilabel_margin_loss(x, mindtorch.full((2, 3), 7)),
        lambda: x.index_reduce(0, mindtorch.tensor([0, -3]), x, "amax"),
    ):
        with pytest.raises((IndexError, RuntimeError), match="out of"):
            call()


def test_universal_functions_agree_with_the_references_of_their_rows():
    """Over negative and whole second operands, infinities and what is no number."""
    from mindtorch._backends.cpu.ufuncs import universal
    from mindtorch._backends.cpu.universal_kernels import kernel
    from mindtorch._tensor.device import CPU
    from mindtorch._tensor.dtype import from_numpy_dtype
    from mindtorch._tensor.geometry import contiguous
    from mindtorch.ops.spec import OPS

    grid = np.array([-np.inf, -2.5, -2, -0.3, 0, 0.25, 1, 1.5, 7, 30, np.inf, np.nan])
    rows = [op for op in OPS.values() if universal(op.name) and op.kernels.cpu]
    assert len(rows) == 41
    for op in rows:
        for kind in (np.float32, np.float64):
            a, b = grid.astype(kind)[:, None], grid.astype(kind)
            out = contiguous((12, 12), from_numpy_dtype(np.dtype(kind)), CPU)
            a = a[:-2] if op.name == "special_zeta" else a  # of infinity torch sums no series
            pairs = [(a, b)] if op.name != "polygamma" else [(n, b) for n in range(1, 9)]
            pairs = pairs if len(op.schema.args) > 1 else [(b,)]
            function = kernel(op, (), (out,))
            if function is None:  # those that are smooth are of float32 alone
                assert kind is np.float64
                continue
            for operands in pairs:
                extra = {"out": out} if op.name == "polygamma" else {}
                with np.errstate(all="ignore"):
                    ours = function(*operands, **extra)
                    theirs = op.kernels.cpu(*operands, **extra)
                tolerance = 1e-5 if kind is np.float32 else 1e-11
                np.testing.assert_allclose(ours, theirs, rtol=tolerance, err_msg=op.name)
                assert ours.dtype == kind


def _far_rows(kind, dim, order):
    """Calls along a dimension of a tensor whose last one is long enough to be read in blocks."""
    torch, rng = mindtorch, np.random.default_rng(7)
    x = torch.from_numpy(rng.integers(-4, 5, (5, 33, 70)).astype(kind))
    x = x if order == "rows" else x.transpose(0, 2)
    shape = list(x.shape)
    shape[dim] += 3
    source = torch.from_numpy(rng.integers(-4, 5, shape).astype(kind))
    at = torch.from_numpy(rng.integers(0, x.shape[dim], shape))
    slices = torch.from_numpy(rng.integers(0, x.shape[dim], shape[dim]))
    yield x.cumsum(dim), x.cummax(dim).values, x.cummin(dim).indices
    yield x.gather(dim, at), x.scatter_add(dim, at, source), x.index_add(dim, slices, source)
    yield x.scatter_reduce(dim, at, source, "amax"), x.scatter(dim, at, 2)
    yield x.to(torch.float16), x[..., ::2].to(torch.float16)


@pytest.mark.parametrize("order", ["rows", "columns"])
@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("kind", ["float32", "float64", "int64", "int32"])
def test_rows_that_lie_far_apart_give_what_numpy_gives(kind, dim, order):
    with native.flags(enabled=False):
        expected = [r.numpy() for results in _far_rows(kind, dim, order) for r in results]
    with native.flags(enabled=True, everywhere=True):
        given = [r.numpy() for results in _far_rows(kind, dim, order) for r in results]
    for ours, numpys in zip(given, expected, strict=True):
        np.testing.assert_array_equal(ours, numpys)


def test_halves_round_and_keep_the_sign_of_nan_as_numpys():
    values = np.array([65504, 65519.99, 65520, 6e-8, 2.9e-8, 1.00048828125, -0.0, np.inf] * 300)
    values = np.concatenate([values, -values, [np.nan, -np.nan]]).astype(np.float32)
    halves = mindtorch.from_numpy(values).to(mindtorch.float16).numpy()
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(
            halves.view(np.int16), values.astype(np.float16).view(np.int16)
        )


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_polygamma_below_zero_is_as_exact_in_float32_as_in_float64(n):
    x = np.linspace(-31.7, -0.3, 200).astype(np.float32)
    single = mindtorch.polygamma(n, mindtorch.from_numpy(x)).numpy()
    double = mindtorch.polygamma(n, mindtorch.from_numpy(x.astype(np.float64))).numpy()
    np.testing.assert_allclose(single, double, rtol=3e-7)


@pytest.mark.parametrize(("m", "k", "n"), [(70_000, 3, 2), (3, 70_000, 2), (2, 3, 70_000)])
def test_long_and_narrow_products_are_right(m, k, n):
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal(size).astype(np.float32) for size in ((m, k), (k, n)))
    left, right = mindtorch.from_numpy(a), mindtorch.from_numpy(b)
    expected = a.astype(np.float64) @ b
    across = mindtorch.from_numpy(np.ascontiguousarray(a.T)).T  # another order in memory
    for product in (left @ right, across @ right, mindtorch.nn.functional.linear(left, right.T)):
        assert product.is_contiguous()
        np.testing.assert_allclose(product.numpy(), expected, rtol=1e-4, atol=2e-3)
    weight = right.T.contiguous().requires_grad_()
    flow = mindtorch.from_numpy(rng.standard_normal((m, n)).astype(np.float32))
    mindtorch.nn.functional.linear(left, weight).backward(flow)
    slope = flow.numpy().astype(np.float64).T @ a
    np.testing.assert_allclose(weight.grad.numpy(), slope, rtol=1e-4, atol=2e-3)


@pytest.mark.parametrize("rows", [7, 5000, 70_000])
@pytest.mark.parametrize("channels", [1, 13, 130])
def test_batch_norm_of_points_is_right(rows, channels):
    if rows * channels > 1 << 20:
        channels = 14
    x = np.random.default_rng(4).standard_normal((rows, channels)).astype(np.float32) * 3 + 1
    flow, wide = np.cos(x), x.astype(np.float64)
    rstd = 1 / np.sqrt(wide.var(0) + 1e-5)
    normal = (wide - wide.mean(0)) * rstd
    slope = rstd * (flow - flow.mean(0) - normal * (flow * normal).mean(0))
    ours = mindtorch.from_numpy(x).requires_grad_()
    out = mindtorch.nn.functional.batch_norm(ours, None, None, training=True)
    out.backward(mindtorch.from_numpy(flow))
    np.testing.assert_allclose(out.detach().numpy(), normal, rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(ours.grad.numpy(), slope, rtol=2e-3, atol=2e-5)
