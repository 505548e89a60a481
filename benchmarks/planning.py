"""What a call of a new shape costs before it runs: CPU time of the calling thread, per operator.

Usage: python benchmarks/planning.py [--calls 300] [--device npu] [--only NAME]

Prints the fastest tenth and the median of calls that met their shape for the first time, and the
median of calls that repeat, in µs. A loaded machine shows in the median, by caches that others
emptied; the fastest tenth says what the code takes.
"""

import argparse
import time

import mindtorch
from mindtorch.nn.functional import layer_norm

AIM = 100  # µs, in the fastest tenth

CASES = {
    "add": lambda a: a + a,
    "relu": mindtorch.relu,
    "matmul": lambda a: a @ a.t(),
    "sum": lambda a: a.sum(1),
    "softmax": lambda a: mindtorch.softmax(a, 1),
    "layer_norm": lambda a: layer_norm(a, a.shape[1:]),
    "cat": lambda a: mindtorch.cat([a, a]),
    "index_put_": lambda a: a.index_put_((ROWS,), VALUE),
}


def cost(call, tensors):
    """CPU time of each call, in µs."""
    times = []
    for tensor in tensors:
        start = time.thread_time_ns()
        call(tensor)
        times.append((time.thread_time_ns() - start) / 1000)
    return sorted(times)


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--device", default="npu")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    global ROWS, VALUE
    ROWS = mindtorch.tensor([0, 2], device=options.device)
    VALUE = mindtorch.zeros((), device=options.device)
    count = options.calls
    for number, (name, call) in enumerate(CASES.items()):
        if options.only not in name:
            continue
        first = 1000 + number * (count + 50)
        tensors = [mindtorch.empty(3, first + i, device=options.device) for i in range(count + 20)]
        cost(call, tensors[:20])
        new, again = cost(call, tensors[20:]), cost(call, tensors[-1:] * count)
        tenth = new[count // 10]
        verdict = "ok" if tenth <= AIM else "SLOW"
        print(f"{name:12} new {tenth:6.1f} µs, median {new[count // 2]:6.1f} µs; "
              f"again {again[count // 2]:5.1f} µs (aim {AIM}) {verdict}")  # fmt: skip


if __name__ == "__main__":
    main()
