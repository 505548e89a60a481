"""Every public function beside torch: forward, forward with backward, at three sizes.

Usage: python -m benchmarks.corners [--sizes small,middle,large] [--only TEXT] [--npu] [--json FILE]

Functions and inputs are those of torch's operator database (`tests/opdb`), and the steps of its
optimizers. A larger input repeats the sample's values along its dimensions, in the first way that
torch takes: of each dimension, of the rows alone, of a batch. The libraries run by turns in one
process on one thread; times are of CPU. A ratio is the median of pairs of neighbouring samples, as
multiples of torch. `first` is the function's first call in the process. `--npu` counts launches
instead: what takes over ten, and which of them has an operator of that name in CANN.
"""

import argparse
import json
import resource
import statistics
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.testing._internal import common_methods_invocations as methods
from torch.testing._internal.common_optimizers import optim_db

import mindtorch
from aclnn_bindings import catalogs
from tests.opdb.entries import function_of
from tests.opdb.translate import Translator
from tests.opdb.verdict import within

SIZES = {"small": 0, "middle": 1 << 12, "large": 1 << 18}  # elements of the largest input
AIMS = {"median": 1.2, "95 %": 2.0, "largest": 5.0}
MEMORY = 8 << 30  # bytes of addresses, beyond which a larger input is not taken
SLOWEST_CALL = 0.1  # seconds of torch's call beyond which a larger input is not measured
SAMPLE = 1e-4  # seconds that a sample takes at least
LAUNCHES = 10
FIRST_SAMPLES = 12  # of an entry, among which one is taken
# What is private, makes code at run time, or reads what no other library fills.
SKIPPED = ("_", "jiterator", "torch.ops", "masked.", "to_sparse", "sparse.")
# They take sparse gradients, or a closure.
SKIPPED_OPTIMIZERS = ("SparseAdam", "LBFGS")


@dataclass(frozen=True)
class Call:
    """One function with a sample: `prepare(lib, device, grad)` gives what is measured."""

    name: str
    values: Any
    function: Callable[[Any], Callable[..., Any]]
    differentiable: bool = True

    def prepare(self, lib: Any, device: str, grad: bool) -> Callable[[], Any]:
        carry = Translator(lib, device)
        first, args, kwargs = carry(self.values)
        function = self.function(lib)
        if not grad:
            return lambda: function(first, *args, **kwargs)
        leaves = carry.leaves
        grads = [lib.ones_like(r) for r in _recorded(function(first, *args, **kwargs))]

        def step() -> Any:
            results = _recorded(function(first, *args, **kwargs))
            return lib.autograd.grad(results, leaves, grads, allow_unused=True)

        return step


@dataclass(frozen=True)
class Step:
    """An optimizer's step over parameters of a size."""

    name: str
    optimizer: str
    kwargs: dict[str, Any]
    numel: int
    differentiable: bool = False

    def prepare(self, lib: Any, device: str, grad: bool = False) -> Callable[[], Any]:
        kind = getattr(lib.optim, self.optimizer)
        shapes = [(self.numel // 8, 4), (self.numel // 8, 4)]
        parameters = [lib.nn.Parameter(lib.ones(s, device=device)) for s in shapes]
        assert not grad
        for parameter in parameters:
            parameter.grad = lib.ones_like(parameter) * 1e-3
        carry = Translator(lib, device)
        optimizer = kind(parameters, **{k: carry(v) for k, v in self.kwargs.items()})
        return lambda: optimizer.step()


@dataclass
class Row:
    """What was measured of one function at one size; times in µs."""

    name: str
    size: str
    direction: str
    torch: float = 0.0
    ours: float = 0.0
    ratio: float = 0.0
    first: float = 0.0
    launches: int = 0
    error: str = ""


@dataclass
class Report:
    """All rows, and what was not measured."""

    rows: list[Row] = field(default_factory=list)
    unscaled: list[str] = field(default_factory=list)


def _unseeded(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The database seeds what draws at random, which takes longer than most functions."""
    return function(*args, **kwargs)


def _recorded(results: Any) -> list[Any]:
    flat = results if isinstance(results, list | tuple) else [results]
    return [r for r in flat if getattr(r, "requires_grad", False)]


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for v in value for t in _tensors(v)] if isinstance(value, list | tuple) else []


def _mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value).detach().contiguous().requires_grad_(value.requires_grad)
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        kind = list if isinstance(value, list) else tuple
        return value if isinstance(value, torch.Size) else kind(_mapped(v, change) for v in value)
    if isinstance(value, dict):
        return {k: _mapped(v, change) for k, v in value.items()}
    return value


def _repeated(t: torch.Tensor, dims: Iterable[int], times: int) -> torch.Tensor:
    counts = [times if d in dims and t.shape[d] > 1 else 1 for d in range(t.dim())]
    return t.repeat(counts) if t.dim() else t


def _blocks(t: torch.Tensor, times: int) -> torch.Tensor:
    """Square matrices along a diagonal, which stay regular; other tensors repeated by rows."""
    if t.dim() < 2 or t.shape[-1] != t.shape[-2]:
        return _repeated(t, (t.dim() - 2 if t.dim() > 1 else 0,), times)
    whole = t.new_zeros(*t.shape[:-2], t.shape[-2] * times, t.shape[-1] * times)
    for i in range(times):
        rows, columns = (slice(i * n, (i + 1) * n) for n in t.shape[-2:])
        whole[..., rows, columns] = t
    return whole


def larger(values: Any, target: int, image: bool) -> Iterator[Any]:
    """The sample with about `target` elements in its largest tensor, in several ways."""
    largest = max(_tensors(values), key=torch.Tensor.numel)
    times = max(target // largest.numel(), 1)
    shape = [n for n in largest.shape if n > 1]
    if times == 1 or not shape:
        return
    each = max(round(times ** (1 / len(shape))), 2)
    root = max(round(times**0.5), 2)
    if image:
        dims = (0, *range(2, largest.dim()))
        side = max(round(times ** (1 / len(dims))), 2)
        yield _mapped(values, lambda t: _repeated(t, dims, side) if t is largest else t)
        yield _mapped(values, lambda t: _repeated(t, (0,), times))
    if largest.dim() > 1 and largest.shape[-1] == largest.shape[-2]:
        yield _mapped(values, lambda t: _blocks(t, root))
    yield _mapped(values, lambda t: _repeated(t, range(t.dim()), each))
    yield _mapped(values, lambda t: _repeated(t, (0,), times))
    yield _mapped(values, lambda t: _repeated(t, (t.dim() - 1,), times))
    yield _mapped(values, lambda t: t.expand(times, *t.shape))
    yield _mapped(values, lambda t: _repeated(t, range(t.dim()), each) if t is largest else t)


def calls(only: str) -> Iterator[Call | Step]:
    """One sample of each entry, and one step of each optimizer."""
    methods.wrapper_set_seed = _unseeded
    for op in methods.op_db:
        name = op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")
        if name.startswith(SKIPPED) or only not in name:
            continue
        call = _sample(op, name)
        if call is not None:
            yield call
    for info in optim_db:
        name = f"optim.{info.optim_cls.__name__}"
        if only in name and info.optim_cls.__name__ not in SKIPPED_OPTIMIZERS:
            given = next(iter(info.optim_inputs_func(device="cpu")))
            yield Step(name, info.optim_cls.__name__, given.kwargs, 16)


def _sample(op: Any, name: str) -> Call | None:
    """The first sample of an entry that has elements in more than one dimension, or any."""
    dtypes = op.supported_dtypes("cpu")
    dtype = next((d for d in (torch.float32, torch.complex64, torch.int64) if d in dtypes), None)
    if dtype is None:
        return None
    grad = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    torch.manual_seed(0)
    np.random.seed(0)
    best: Call | None = None
    for sample in islice(op.sample_inputs("cpu", dtype, requires_grad=grad), FIRST_SAMPLES):
        values = sample.input, sample.args, sample.kwargs
        tensors = _tensors(values)
        if any(not t.numel() or t.layout is not torch.strided for t in tensors):
            continue
        call = Call(name, values, lambda lib: function_of(op, lib), grad)
        if tensors and max(t.dim() for t in tensors) > 1:
            return call
        best = best or call
    return best


def scaled(call: Call | Step, target: int) -> Call | Step | None:
    """The call with larger inputs, None where torch takes none, or takes too long."""
    if isinstance(call, Step):
        return Step(call.name, call.optimizer, call.kwargs, target)
    if not target:
        return call
    if not _tensors(call.values):
        return None
    image = call.name.startswith("nn.functional.")
    for values in larger(call.values, target, image):
        one = Call(call.name, values, call.function, call.differentiable)
        try:
            with torch.no_grad():
                run = one.prepare(torch, "cpu", grad=False)
                run()
                start = time.perf_counter()
                run()
        except Exception:
            continue
        if time.perf_counter() - start < SLOWEST_CALL:
            return one
    return None


def _timed(run: Callable[[], Any], number: int) -> float:
    """µs of this thread's CPU a call: of a busy machine's other work it shows little."""
    start = time.thread_time()
    for _ in range(number):
        run()
    return (time.thread_time() - start) / number * 1e6


def measure(row: Row, call: Call | Step, grad: bool, seconds: float) -> None:
    """Fill a row: samples of the libraries by turns until `seconds` are spent, seven at least."""
    with ExitStack() as stack:
        if not grad and isinstance(call, Call):
            stack.enter_context(torch.no_grad())
            stack.enter_context(mindtorch.no_grad())
        stack.enter_context(within(20))
        theirs, ours = call.prepare(torch, "cpu", grad), call.prepare(mindtorch, "cpu", grad)
        first = _timed(theirs, 1), _timed(ours, 1)
        row.first = first[1] / first[0]
        warm = max(min(_timed(run, 1), _timed(run, 1)) for run in (theirs, ours)) / 1e6
        number = max(int(SAMPLE / warm), 1)
        pairs: list[tuple[float, float]] = []
        end = time.perf_counter() + seconds
        while len(pairs) < 7 or (time.perf_counter() < end and len(pairs) < 41):
            pairs.append((_timed(theirs, number), _timed(ours, number)))
            if len(pairs) >= 3 and time.perf_counter() > end + 0.2:
                break
    row.torch, row.ours = (statistics.median(p[i] for p in pairs) for i in (0, 1))
    row.ratio = statistics.median(b / a for a, b in pairs)


def count(row: Row, call: Call | Step, grad: bool) -> None:
    """Fill a row with the launches of a warm call on npu."""
    runtime = mindtorch.npu._runtime.cann().runtime
    with ExitStack() as stack:
        if not grad and isinstance(call, Call):
            stack.enter_context(mindtorch.no_grad())
        stack.enter_context(within(20))
        run = call.prepare(mindtorch, "npu", grad)
        run()
        before = runtime.counters()["launches"]
        run()
        row.launches = runtime.counters()["launches"] - before


def survey(options: argparse.Namespace) -> Report:
    """Measure every chosen function."""
    report = Report()
    for call in calls(options.only):
        for size in options.sizes.split(","):
            sized = scaled(call, SIZES[size] or (16 if isinstance(call, Step) else 0))
            if sized is None:
                report.unscaled.append(f"{call.name} ({size})")
                continue
            for grad in (False, True) if call.differentiable else (False,):
                row = Row(call.name, size, "backward" if grad else "forward")
                try:
                    if options.npu:
                        count(row, sized, grad)
                    else:
                        measure(row, sized, grad, options.seconds)
                except Exception as error:
                    row.error = f"{type(error).__name__}: {error}".split("\n")[0][:120]
                report.rows.append(row)
    return report


def distribution(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {
        "median": statistics.median(ordered),
        "95 %": ordered[min(len(ordered) * 95 // 100, len(ordered) - 1)],
        "largest": ordered[-1],
    }


def show(report: Report) -> None:
    """Per size and direction the distribution beside the aims, then the twenty worst."""
    rows = [r for r in report.rows if not r.error]
    for size, direction in sorted({(r.size, r.direction) for r in rows}, reverse=True):
        chosen = [r for r in rows if (r.size, r.direction) == (size, direction)]
        parts = [
            f"{name} {value:.2f} {'ok' if value <= AIMS[name] else 'SLOW'}"
            for name, value in distribution([r.ratio for r in chosen]).items()
        ]
        cold = distribution([r.first for r in chosen])
        print(f"{size:7}{direction:9}{len(chosen):5} functions: {', '.join(parts)}; first calls"
              f" {cold['median']:.2f}, {cold['95 %']:.2f}, {cold['largest']:.1f}")  # fmt: skip
    for row in sorted(rows, key=lambda r: -r.ratio)[:20]:
        print(f"{row.ratio:8.2f}  {row.name} ({row.size}, {row.direction}):"
              f" {row.ours:.1f} µs, torch {row.torch:.1f}")  # fmt: skip


# Why a function is composed where CANN has an operator of its name.
COMPOSED = {
    "multinomial": "draws repeat by seed on every device; the operator's algorithm is undocumented",
    "multilabel_margin_loss": "the operator has no gradient beside it, which reads what it reads",
    "histc": "the range is read from the data, and refused where it is not finite, before it",
}
ATLAS = ("910b", "A3")  # products that mindtorch's rows are written for


def note_of(row: Row, operators: set[str], specs: dict[str, Any]) -> str:
    """What CANN has for a function: an operator, for a gradient one of a gradient, and where."""
    plain = row.name.split(".")[-1].replace("_", "").lower()
    ends = ("",) if row.direction == "forward" else ("backward", "grad")
    matches = [n for n in operators if n.lower() in {f"aclnn{plain}{end}" for end in ends}]
    if not matches:
        return ""
    products = specs.get(matches[0], {}).get("products", "").split()
    if products and not any(p in ATLAS for p in products):
        return f" {matches[0]} is for {', '.join(products)} alone"
    reason = COMPOSED.get(row.name.removeprefix("nn.functional."))
    return f" composed: {reason}" if reason else f" CANN has {matches[0]}"


def show_launches(report: Report) -> None:
    """What takes more launches than the limit."""
    operators = set(dir(mindtorch.npu._runtime.cann().ops))
    specs = json.loads(Path(catalogs.__path__[0], "op_specs.json").read_text())["ops"]
    rows = sorted((r for r in report.rows if not r.error), key=lambda r: -r.launches)
    over = [r for r in rows if r.launches > LAUNCHES]
    print(f"{len(rows)} functions, {len(over)} take over {LAUNCHES} launches")
    for row in over:
        note = note_of(row, operators, specs)
        print(f"{row.launches:6}  {row.name} ({row.size}, {row.direction}){note}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="small", help=f"of {', '.join(SIZES)}, with commas")
    parser.add_argument("--only", default="", help="functions whose name holds this")
    parser.add_argument("--seconds", type=float, default=0.03, help="of samples of a function")
    parser.add_argument("--npu", action="store_true", help="count launches on npu")
    parser.add_argument("--json", type=Path, help="write every row to this file")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    mindtorch.set_num_threads(1)
    if not options.npu:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    report = survey(options)
    (show_launches if options.npu else show)(report)
    errors = [r for r in report.rows if r.error]
    for row in errors:
        print(f"not measured: {row.name} ({row.size}, {row.direction}): {row.error}")
    print(f"{len(report.unscaled)} functions take no larger input of this form")
    if options.json:
        options.json.write_text(json.dumps([asdict(r) for r in report.rows], indent=1))


if __name__ == "__main__":
    main()
