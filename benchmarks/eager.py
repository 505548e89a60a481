"""Eager operations beside torch: one process, one thread, short interleaved rounds.

A round takes a fraction of a millisecond, so that on a shared machine many rounds are undisturbed;
what is told is what the fastest tenth of the rounds took at most.

Usage: python benchmarks/eager.py [--npu] [--json FILE] [--only NAME]

torch 2.13 CPU is the yardstick. The npu column runs on whatever install is found; with the bundled
simulator, set ACLSIM_STREAM=inline before starting so that launches run on the calling thread.
"""

import argparse
import json
import timeit

ROUNDS = 300

LIMIT = 1.0  # as multiples of torch
NAMES = (
    "a + b", "a.add_(b)", "a @ b", "a.sum()", "a.view(2, 2)", "a[1:3]", "a + b, recorded",
    "(a*b).sum().backward()", "Linear forward + backward",
)  # fmt: skip


def cases(torch, device):
    """The measured calls of one library on one device."""
    a, b, c = (torch.ones(4, device=device) for _ in range(3))
    m = torch.ones(4, 4, device=device)
    g = torch.ones(4, device=device, requires_grad=True)
    linear = torch.nn.Linear(4, 4).to(device)
    return {
        "a + b": lambda: a + b,
        "a.add_(b)": lambda: c.add_(b),
        "a @ b": lambda: m @ m,
        "a.sum()": lambda: a.sum(),
        "a.view(2, 2)": lambda: a.view(2, 2),
        "a[1:3]": lambda: a[1:3],
        "a + b, recorded": lambda: g + b,
        "(a*b).sum().backward()": lambda: (g * b).sum().backward(),
        "Linear forward + backward": lambda: linear(m).sum().backward(),
    }


def measure(columns, only):
    """µs a call per case and column; rounds of the columns are interleaved."""
    found = {}
    for name in NAMES:
        if only and only not in name:
            continue
        number = 30 if "backward" in name else 200
        times = {column: [] for column in columns}
        for _ in range(ROUNDS):
            for column, calls in columns.items():
                times[column].append(timeit.timeit(calls[name], number=number) / number * 1e6)
        found[name] = {column: sorted(t)[ROUNDS // 10] for column, t in times.items()}
    return found


def show(found):
    """Print one line per case: µs, and multiples of torch, SLOW where they are above its time."""
    for name, times in found.items():
        line = f"{name:28} torch {times['torch']:7.2f} µs"
        for column in ("cpu", "npu"):
            if column in times:
                ratio = times[column] / times["torch"]
                verdict = "ok" if ratio <= LIMIT else "SLOW"
                line += f"   {column} {times[column]:7.2f} µs {ratio:5.2f}x {verdict}"
        print(line)


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--npu", action="store_true", help="measure the npu backend too")
    parser.add_argument("--json", help="write the times to this file")
    parser.add_argument("--only", help="cases whose name holds this")
    options = parser.parse_args()
    import torch

    import mindtorch

    torch.set_num_threads(1)
    mindtorch.set_num_threads(1)
    columns = {"torch": cases(torch, "cpu"), "cpu": cases(mindtorch, "cpu")}
    if options.npu:
        columns["npu"] = cases(mindtorch, "npu")
    found = measure(columns, options.only)
    show(found)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
