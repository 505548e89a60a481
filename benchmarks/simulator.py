"""Time simulator kernels beside torch CPU at the same number of threads, in one run.

python benchmarks/simulator.py [--threads N] [--rounds N] [--only NAME] [--json]

Kernels run in the caller's thread (ACLSIM_STREAM=inline), so that what is timed is the kernel, not
the hand-over to a stream. Both sides get the same shapes and write into memory allocated
beforehand where torch can; rounds alternate between the two, and the medians are compared. On a
machine that others use, compare the fastest tenths (`--quantile 0.1`). The aim is a ratio of 1.5
(2.5 for convolutions of float32).
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Case:
    """One op: how torch runs it, and the op's arguments with arrays for tensors."""

    name: str
    theirs: Callable[[], Any]
    op: str
    arguments: tuple[Any, ...]
    aim: float = 1.5


@dataclass(frozen=True, slots=True)
class Half:
    """Values that stand on the device in two bytes each."""

    values: Any
    dtype: str  # ACL's name


HALVES = {"FLOAT16": "float16", "BF16": "bfloat16"}


def cases(torch: Any) -> list[Case]:
    """The kernels whose speed is promised."""
    functional = torch.nn.functional
    rng = np.random.default_rng(0)

    def array(*shape: int) -> Any:
        return rng.standard_normal(shape, dtype=np.float32)

    big, other, out = array(1 << 20), array(1 << 20), array(1 << 20)
    matrix, matrix_out, row = array(1024, 1024), array(1024, 1024), array(1024)
    a, b, product = array(512, 512), array(512, 512), array(512, 512)
    t = {
        id(x): torch.from_numpy(x)
        for x in (big, other, out, matrix, matrix_out, row, a, b, product)
    }

    def of(x: Any) -> Any:
        return t[id(x)]

    made = [
        Case(
            "add 2^20",
            lambda: torch.add(of(big), of(other), out=of(out)),
            "aclnnAdd",
            (big, other, 1.0, out),
        ),
        Case(
            "mul 2^20",
            lambda: torch.mul(of(big), of(other), out=of(out)),
            "aclnnMul",
            (big, other, out),
        ),
        Case("exp 2^20", lambda: torch.exp(of(big), out=of(out)), "aclnnExp", (big, out)),
        Case(
            "gelu 2^20",
            lambda: functional.gelu(of(big), approximate="tanh"),
            "aclnnGelu",
            (big, out),
        ),
        Case(
            "sum [1024,1024]",
            lambda: of(matrix).sum(),
            "aclnnReduceSum",
            (matrix, (0, 1), False, 0, np.zeros((), np.float32)),
        ),
        Case(
            "sum rows", lambda: of(matrix).sum(1), "aclnnReduceSum", (matrix, (1,), False, 0, row)
        ),
        Case(
            "sum columns",
            lambda: of(matrix).sum(0),
            "aclnnReduceSum",
            (matrix, (0,), False, 0, row),
        ),
        Case(
            "softmax [1024,1024]",
            lambda: torch.softmax(of(matrix), 1),
            "aclnnSoftmax",
            (matrix, 1, matrix_out),
        ),
        Case(
            "matmul 512",
            lambda: torch.mm(of(a), of(b), out=of(product)),
            "aclnnMatmul",
            (a, b, product, 0),
        ),
    ]
    made += [norm_case(torch, array), index_case(torch, array, rng)]
    made += convolution_cases(torch, array)
    for dtype in HALVES:
        made += half_cases(torch, array, dtype)
    return made


def norm_case(torch: Any, array: Callable[..., Any]) -> Case:
    """Layer norm over [1024, 1024]."""
    x, w, b, out = array(1024, 1024), array(1024), array(1024), array(1024, 1024)
    mean, rstd = array(1024, 1), array(1024, 1)
    tx, tw, tb = (torch.from_numpy(v) for v in (x, w, b))
    return Case(
        "layer norm",
        lambda: torch.nn.functional.layer_norm(tx, (1024,), tw, tb),
        "aclnnLayerNorm",
        (x, (1024,), w, b, 1e-5, out, mean, rstd),
    )


def index_case(torch: Any, array: Callable[..., Any], rng: Any) -> Case:
    """index_put of 2^16 rows of 64."""
    x, values = array(1 << 17, 64), array(1 << 16, 64)
    at = rng.permutation(1 << 17)[: 1 << 16]
    tx, tv, ti = (torch.from_numpy(v) for v in (x, values, at))
    return Case(
        "index_put 2^16",
        lambda: tx.index_put_((ti,), tv),
        "aclnnIndexPutImpl",
        (x, (at,), values, False, False),
    )


def convolution_cases(torch: Any, array: Callable[..., Any]) -> list[Case]:
    """3x3 convolution on [8, 64, 56, 56] and its backward."""
    x, w, y = array(8, 64, 56, 56), array(64, 64, 3, 3), array(8, 64, 56, 56)
    gx, gw = array(8, 64, 56, 56), array(64, 64, 3, 3)
    tx, tw, ty = (torch.from_numpy(v) for v in (x, w, y))
    one, zero = (1, 1), (0, 0)
    back = torch.ops.aten.convolution_backward
    return [
        Case(
            "conv2d 3x3",
            lambda: torch.nn.functional.conv2d(tx, tw, padding=1),
            "aclnnConvolution",
            (x, w, None, one, one, one, False, zero, 1, y, 0),
            2.5,
        ),
        Case(
            "conv2d backward",
            lambda: back(ty, tx, tw, None, one, one, one, False, zero, 1, (True, True, False)),
            "aclnnConvolutionBackward",
            (y, x, w, None, one, one, one, False, zero, 1, (True, True, False), 0, gx, gw, None),
            2.5,
        ),
    ]


def half_cases(torch: Any, array: Callable[..., Any], dtype: str) -> list[Case]:
    """Products, attention ([2, 8, 256, 64], causal) and a convolution in halves."""

    def both(*shape: int) -> tuple[Half, Any]:
        values = array(*shape) / 8
        return Half(values, dtype), torch.from_numpy(values).to(getattr(torch, HALVES[dtype]))

    (a, ta), (b, tb), (c, tc) = both(512, 512), both(512, 512), both(512, 512)
    (batch, t_batch), (by, t_by), (products, t_products) = (both(16, 128, 128) for _ in range(3))
    (row, t_row), (weight, t_weight), (sums, t_sums) = (
        both(1, 2048),
        both(2048, 2048),
        both(1, 2048),
    )
    (q, tq), (k, tk), (v, tv), (out, _) = (both(2, 8, 256, 64) for _ in range(4))
    (x, tx), (w, tw), (y, _) = both(8, 64, 56, 56), both(64, 64, 3, 3), both(8, 64, 56, 56)
    peaks, totals = array(2, 8, 256, 8), array(2, 8, 256, 8)
    later = np.triu(np.ones((256, 256), bool), 1)
    attend = torch.nn.functional.scaled_dot_product_attention
    one, zero = (1, 1), (0, 0)
    return [
        Case(f"matmul 512 {dtype}", lambda: torch.mm(ta, tb, out=tc), "aclnnMatmul", (a, b, c, 0)),
        Case(
            f"bmm 16x128 {dtype}",
            lambda: torch.bmm(t_batch, t_by, out=t_products),
            "aclnnBatchMatMul",
            (batch, by, products, 0),
        ),
        Case(
            f"one row {dtype}",
            lambda: torch.mm(t_row, t_weight, out=t_sums),
            "aclnnMatmul",
            (row, weight, sums, 0),
        ),
        Case(
            f"attention {dtype}",
            lambda: attend(tq, tk, tv, is_causal=True),
            "aclnnFlashAttentionScore",
            (q, k, v, None, None, None, later, None, 0.125, 1.0, 65535, 65535, 8, "BNSD", 0, 0,
             peaks, totals, None, out),
        ),
        Case(
            f"conv2d 3x3 {dtype}",
            lambda: torch.nn.functional.conv2d(tx, tw, padding=1),
            "aclnnConvolution",
            (x, w, None, one, one, one, False, zero, 1, y, 0),
        ),
    ]  # fmt: skip


def on_device(cann: Any, value: Any) -> Any:
    """A copy of an array, or of the values of a `Half` in its dtype."""
    if isinstance(value, np.ndarray):
        return cann.tensor(value)
    made = cann.empty(value.values.shape, value.dtype)
    cann.op("aclnnCast")(cann.tensor(value.values), made.spec.dtype, made)
    return made


def ours(cann: Any, case: Case) -> Callable[[], None]:
    """A launch with everything on the device, waited for."""

    def place(value: Any) -> Any:
        if isinstance(value, np.ndarray | Half):
            made = on_device(cann, value)
            images = len(made.spec.shape) == 4 and case.op.startswith("aclnnConv")
            return made.view(made.spec.shape, made.spec.strides, format="NCHW") if images else made
        is_list = isinstance(value, tuple) and value and isinstance(value[0], np.ndarray)
        return tuple(place(v) for v in value) if is_list else value

    arguments = tuple(place(v) for v in case.arguments)
    op, stream = cann.op(case.op), cann.runtime.current_stream()

    def run() -> None:
        op(*arguments)
        stream.synchronize()

    return run


def times_us(run: Callable[[], Any], rounds: int) -> list[float]:
    """Times of `rounds` calls in µs."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter_ns()
        run()
        times.append((time.perf_counter_ns() - start) / 1000)
    return times


def compare(cann: Any, case: Case, rounds: int, quantile: float) -> dict[str, Any]:
    """Times in µs at `quantile` of alternating batches after a warm-up."""
    mine = ours(cann, case)
    for run in (mine, case.theirs):
        times_us(run, 3)
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(5):
        times[0].extend(times_us(mine, rounds // 5))
        times[1].extend(times_us(case.theirs, rounds // 5))
    a, b = (float(np.quantile(t, quantile)) for t in times)
    return {"case": case.name, "simulator_us": round(a, 1), "torch_us": round(b, 1),
            "ratio": round(a / b, 2), "aim": case.aim}  # fmt: skip


def main() -> None:
    """Print one line per case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--only", default="", help="part of the cases' names")
    parser.add_argument("--quantile", type=float, default=0.5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    os.environ["ACLSIM_THREADS"] = str(options.threads)
    os.environ.setdefault("ACLSIM_STREAM", "inline")
    import torch

    import aclnn_bindings

    torch.set_num_threads(options.threads)
    torch.set_grad_enabled(False)
    cann = aclnn_bindings.open(simulator=True)
    for case in cases(torch):
        if options.only not in case.name:
            continue
        if not cann.has_op(case.op):
            print(f"{case.name:22} {case.op} is not exported")
            continue
        row = compare(cann, case, options.rounds, options.quantile)
        if options.json:
            print(json.dumps(row))
        else:
            print(
                f"{row['case']:22} simulator {row['simulator_us']:9.1f} us   torch "
                f"{row['torch_us']:9.1f} us   ratio {row['ratio']:5.2f}   aim {row['aim']}"
            )


if __name__ == "__main__":
    main()
