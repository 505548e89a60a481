"""How often products of float32 are torch's bit for bit, over random shapes and layouts.

Usage: python -m benchmarks.product_bits [--device cpu|npu] [--only TEXT] [--cases N] [--largest N]

A line per function: the share of results whose bits are torch's (forward, and gradients by all
inputs), and the largest distance in units of the last place of the result's largest element.
"""

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Arrays = list[np.ndarray]
Case = tuple[Callable[..., Any], Arrays]
Sizes = Callable[[], int]


def matrix(draw: Any, rows: int, columns: int, *lead: int) -> np.ndarray:
    """Values, half of the time in a transposed layout."""
    if draw.random() < 0.5:
        return draw.standard_normal((*lead, rows, columns), np.float32)
    return draw.standard_normal((*lead, columns, rows), np.float32).swapaxes(-1, -2)


def cases(draw: Any, size: Sizes) -> dict[str, Callable[[], Case]]:
    """Makers of one random call each, by function: `call(torch, *tensors)` and its tensors."""

    def dense(*shape: int) -> np.ndarray:
        return draw.standard_normal(shape, np.float32)

    def mm() -> Case:
        m, k, n = size(), size(), size()
        return lambda t, a, b: t.mm(a, b), [matrix(draw, m, k), matrix(draw, k, n)]

    def addmm() -> Case:
        m, k, n = size(), size(), size()
        bias = dense(n) if draw.random() < 0.5 else dense(m, n)
        return lambda t, c, a, b: t.addmm(c, a, b), [bias, matrix(draw, m, k), matrix(draw, k, n)]

    def bmm() -> Case:
        m, k, n, batch = size(), size(), size(), int(draw.integers(1, 6))
        operands = [matrix(draw, m, k, batch), matrix(draw, k, n, batch)]
        return lambda t, a, b: t.bmm(a, b), operands

    def baddbmm() -> Case:
        a, b = bmm()[1]
        return lambda t, c, a, b: t.baddbmm(c, a, b), [dense(len(a), a.shape[1], b.shape[2]), a, b]

    def matmul() -> Case:
        m, k, n = size(), size(), size()
        shapes = [((k,), (k,)), ((m, k), (k,)), ((k,), (k, n)), ((3, m, k), (k, n)),
                  ((2, 3, m, k), (2, 3, k, n)), ((3, m, k), (k,)), ((m, k), (2, k, n))]  # fmt: skip
        a, b = shapes[draw.integers(len(shapes))]
        return lambda t, a, b: t.matmul(a, b), [dense(*a), dense(*b)]

    def linear(bias: bool, lead: int) -> Callable[[], Case]:
        def make() -> Case:
            k, n = size(), size()
            rows = [int(draw.integers(1, 5)) for _ in range(lead - 1)] + [size()]
            operands = [dense(*rows, k), dense(n, k)] + ([dense(n)] if bias else [])
            return lambda t, *x: t.nn.functional.linear(*x), operands

        return make

    def mv() -> Case:
        m, k = size(), size()
        return lambda t, a, x: t.mv(a, x), [matrix(draw, m, k), dense(k)]

    def dot() -> Case:
        k = size()
        return lambda t, a, b: t.dot(a, b), [dense(k), dense(k)]

    def einsum() -> Case:
        b, i, j, k = int(draw.integers(1, 5)), size(), size(), size()
        texts = [("bij,bjk->bik", (b, i, j), (b, j, k)), ("bij,bkj->bik", (b, i, j), (b, k, j)),
                 ("ij,kj->ik", (i, j), (k, j)), ("bij,j->bi", (b, i, j), (j,)),
                 ("bhid,bhjd->bhij", (b, 2, i, k), (b, 2, j, k))]  # fmt: skip
        text, first, second = texts[draw.integers(len(texts))]
        return lambda t, x, y: t.einsum(text, x, y), [dense(*first), dense(*second)]

    def convolution(rank: int, transposed: bool) -> Callable[[], Case]:
        def make() -> Case:
            groups = int(draw.choice([1, 1, 1, 2]))
            cin, cout = (groups * int(draw.choice([1, 3, 4, 8, 16])) for _ in range(2))
            kernel = [int(draw.choice([1, 3, 3, 5]))] * rank
            space = [int(draw.integers(5, 24 if rank < 3 else 9)) for _ in range(rank)]
            stride, pad = int(draw.choice([1, 1, 2])), int(draw.integers(0, 2))
            first, second = (cin, cout) if transposed else (cout, cin)
            weight = dense(first, second // groups, *kernel)
            name = f"conv{'_transpose' if transposed else ''}{rank}d"
            return lambda t, x, w, b: getattr(t.nn.functional, name)(
                x, w, b, stride=stride, padding=pad, groups=groups
            ), [dense(int(draw.integers(1, 5)), cin, *space), weight, dense(cout)]

        return make

    def attention(causal: bool) -> Callable[[], Case]:
        def make() -> Case:
            shape = (int(draw.integers(1, 4)), int(draw.integers(1, 5)))
            length, width = min(size(), 96), int(draw.choice([8, 16, 32, 64]))
            return lambda t, q, k, v: t.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=causal
            ), [dense(*shape, length, width) for _ in range(3)]

        return make

    def recurrent(name: str, gates: int) -> Callable[[], Case]:
        def make() -> Case:
            batch, steps = int(draw.integers(1, 9)), int(draw.integers(1, 7))
            inside, hidden = min(size(), 48), min(size(), 48)
            wide = gates * hidden
            weights = [(wide, inside), (wide, hidden), (wide,), (wide,)]

            def call(t: Any, x: Any, *ws: Any) -> Any:
                layer = getattr(t.nn, name)(inside, hidden).to(x.device)
                named = dict(layer.named_parameters())
                return t.func.functional_call(layer, dict(zip(named, ws, strict=True)), (x,))[0]

            return call, [dense(steps, batch, inside), *(dense(*w) * 0.2 for w in weights)]

        return make

    def bilinear() -> Case:
        b, i, j, o = size(), min(size(), 24), min(size(), 24), min(size(), 24)
        operands = [dense(b, i), dense(b, j), dense(o, i, j), dense(o)]
        return lambda t, *x: t.nn.functional.bilinear(*x), operands

    def cdist() -> Case:
        m, n, k = size(), size(), size()
        return lambda t, a, b: t.cdist(a, b), [dense(m, k), dense(n, k)]

    return {
        "mm": mm, "addmm": addmm, "bmm": bmm, "baddbmm": baddbmm, "matmul": matmul,
        "linear": linear(True, 1), "linear 3-d": linear(True, 2), "mv": mv, "dot": dot,
        "linear no bias": linear(False, 1), "linear no bias 3-d": linear(False, 2),
        "einsum": einsum,
        "conv1d": convolution(1, False), "conv2d": convolution(2, False),
        "conv3d": convolution(3, False), "conv_transpose1d": convolution(1, True),
        "conv_transpose2d": convolution(2, True), "attention": attention(False),
        "attention causal": attention(True), "LSTM": recurrent("LSTM", 4),
        "GRU": recurrent("GRU", 3), "RNN": recurrent("RNN", 1), "bilinear": bilinear,
        "cdist": cdist,
    }  # fmt: skip


def results(torch: Any, call: Callable[..., Any], arrays: Arrays, device: str) -> Arrays:
    """The value and the gradients by every tensor, of a fixed flow."""
    tensors = []
    for array in arrays:
        turned = array.ndim > 1 and not array.flags.c_contiguous
        t = torch.tensor(np.ascontiguousarray(array.swapaxes(-1, -2) if turned else array))
        t = t.to(device)
        tensors.append((t.transpose(-1, -2) if turned else t).detach().requires_grad_())
    value = call(torch, *tensors)
    flow = np.random.default_rng(7).standard_normal(tuple(value.shape), np.float32)
    grads = torch.autograd.grad(value, tensors, torch.tensor(flow).to(device))
    return [t.detach().cpu().numpy() for t in (value, *grads)]


def steps(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest difference in units of the last place of the largest element."""
    if not theirs.size:
        return 0.0
    unit = float(np.spacing(np.abs(theirs).max()))
    return float(np.abs(ours.astype(np.float64) - theirs).max()) / unit


def measure(
    make: Callable[[], Case], count: int, device: str
) -> Iterator[tuple[bool, bool, float]]:
    """Of each case whether the value is equal, whether all gradients are, the largest distance."""
    import torch

    import mindtorch

    for _ in range(count):
        call, arrays = make()
        theirs = results(torch, call, arrays, "cpu")
        ours = results(mindtorch, call, arrays, device)
        same = [np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True)]
        yield same[0], all(same[1:]), max(map(steps, ours, theirs))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", default="")
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--largest", type=int, default=512)
    options = parser.parse_args()
    draw = np.random.default_rng(0)
    usual = [1, 2, 3, 4, 5, 7, 8, 10, 12, 16, 20, 32, 48, 64, 100, 128, 200, 256, 300, 512]
    sizes = [s for s in usual if s <= options.largest]
    print(f"{'function':24} {'forward':>8} {'backward':>8} {'ulp':>8}")
    for name, make in cases(draw, lambda: int(draw.choice(sizes))).items():
        if options.only not in name:
            continue
        rows = list(measure(make, options.cases, options.device))
        forward, backward = (100 * sum(r[i] for r in rows) / len(rows) for i in (0, 1))
        print(
            f"{name:24} {forward:7.0f}% {backward:7.0f}% {max(r[2] for r in rows):8.1f}", flush=True
        )


if __name__ == "__main__":
    main()
