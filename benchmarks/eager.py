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

# case -> (limit npu, limit cpu), as multiples of torch
LIMITS = {
    "a + b": (1.25, 1.1),
    "a.add_(b)": (1.4, 1.1),
    "a @ b": (1.2, 1.25),
    "a.sum()": (1.0, 1.5),
    "a.view(2, 2)": (1.0, 1.0),
    "a[1:3]": (1.0, 1.0),
    "a + b, recorded": (1.25, 1.1),
    "(a*b).sum().backward()": (1.0, 1.0),
    "Linear forward + backward": (1.0, 1.1),
}


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
    for name in LIMITS:
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
    """Print one line per case: µs, and multiples of torch beside their limits."""
    for name, times in found.items():
        npu, cpu = LIMITS[name]
        line = f"{name:28} torch {times['torch']:7.2f} µs"
        for column, limit in (("cpu", cpu), ("npu", npu)):
            if column in times:
                ratio = times[column] / times["torch"]
                verdict = "ok" if ratio <= limit else "SLOW"
                line += f"   {column} {times[column]:7.2f} µs {ratio:5.2f}x (≤ {limit}) {verdict}"
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
