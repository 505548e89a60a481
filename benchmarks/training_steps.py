"""Training steps beside torch: one process, rounds of the libraries interleaved.

Usage: python benchmarks/training_steps.py [--npu] [--only TEXT] [--rounds N] [--threads N]
  [--memory]

A step is forward, loss, backward and the optimizer's step; what is told is the fastest tenth of the
rounds. torch 2.13 CPU is the yardstick. The npu column runs on whatever install is found; with the
bundled simulator, ACLSIM_STREAM=inline makes launches run on the calling thread. `--memory` tells
instead by how much the peak of a process's memory grows in three steps, each library in a process
of its own.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Step = Callable[[], Any]


def gpt(torch: Any, device: str, batch: int, length: int, width: int, heads: int, layers: int,
        words: int) -> Step:  # fmt: skip
    """A decoder of pre-norm blocks with AdamW."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            parts = self.qkv(self.before(x)).split(width, dim=2)
            q, k, v = (p.view(batch, length, heads, width // heads).transpose(1, 2) for p in parts)
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(nn.functional.gelu(self.up(self.between(x))))

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words)

        def forward(self, tokens: Any, places: Any) -> Any:
            x = self.words(tokens) + self.places(places)
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    model = Model().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    tokens = torch.randint(0, words, (batch, length + 1)).to(device)
    places = torch.arange(length, device=device)

    def step() -> Any:
        optimizer.zero_grad()
        scores = model(tokens[:, :-1], places).view(-1, words)
        loss = nn.functional.cross_entropy(scores, tokens[:, 1:].reshape(-1))
        loss.backward()
        optimizer.step()
        return loss

    return step


def classifier(torch: Any, model: Any, optimizer: Any, inputs: Any, device: str) -> Step:
    """Steps of a model with ten classes."""
    target = torch.randint(0, 10, (inputs.shape[0],)).to(device)

    def step() -> Any:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), target)
        loss.backward()
        optimizer.step()
        return loss

    return step


def mlp(torch: Any, device: str, batch: int, width: int) -> Step:
    """Three linear layers with SGD."""
    nn = torch.nn
    model = nn.Sequential(
        nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 1e-2, momentum=0.9)
    return classifier(torch, model, optimizer, torch.randn(batch, width).to(device), device)


def cnn(torch: Any, device: str, batch: int, side: int) -> Step:
    """Two convolutions with batch norm and pooling, with Adam."""
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * (side // 4) ** 2, 10),
    ).to(device)  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    return classifier(torch, model, optimizer, torch.randn(batch, 3, side, side).to(device), device)


# name -> (the step, limit cpu, limit npu), as multiples of torch
CASES: dict[str, tuple[Callable[[Any, str], Step], float, float]] = {
    "GPT 2x16, 2 layers of 32": (lambda t, d: gpt(t, d, 2, 16, 32, 2, 2, 65), 1.2, 1.2),
    "GPT 4x64, 4 layers of 128": (lambda t, d: gpt(t, d, 4, 64, 128, 4, 4, 512), 2.0, 1.1),
    "GPT 8x128, 4 layers of 256": (lambda t, d: gpt(t, d, 8, 128, 256, 8, 4, 1024), 2.0, 1.1),
    "MLP 64x512": (lambda t, d: mlp(t, d, 64, 512), 2.0, 1.1),
    "CNN 16x3x32x32": (lambda t, d: cnn(t, d, 16, 32), 2.0, 1.1),
}


def measure(steps: dict[str, Step], rounds: int) -> dict[str, float]:
    """ms a step: the fastest tenth of interleaved rounds."""
    for step in steps.values():
        step()
        step().item()
    times: dict[str, list[float]] = {column: [] for column in steps}
    for _ in range(rounds):
        for column, step in steps.items():
            start = time.perf_counter()
            step().item()
            times[column].append((time.perf_counter() - start) * 1e3)
    return {column: sorted(found)[len(found) // 10] for column, found in times.items()}


def show(name: str, times: dict[str, float], limits: dict[str, float]) -> None:
    """One line: ms, and multiples of torch beside their limits."""
    line = f"{name:28} torch {times['torch']:8.2f} ms"
    for column in [c for c in times if c != "torch"]:
        ratio = times[column] / times["torch"]
        verdict = "ok" if ratio <= limits[column] else "SLOW"
        line += f"   {column} {times[column]:8.2f} ms {ratio:5.2f}x (≤ {limits[column]}) {verdict}"
    print(line, flush=True)


def peak(library: str, device: str, name: str) -> int:
    """Bytes by which this process's peak grows in three steps."""
    import importlib

    torch = importlib.import_module(library)
    torch.set_num_threads(1)
    step = CASES[name][0](torch, device)
    before = _peak_of_process()
    for _ in range(3):
        step().item()
    return _peak_of_process() - before


def _peak_of_process() -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


def tell_memory(only: str, npu: bool) -> None:
    """Peaks of each case, each library and device in a process of its own."""
    columns = {"torch": ("torch", "cpu"), "cpu": ("mindtorch", "cpu")}
    if npu:
        columns["npu"] = ("mindtorch", "npu")
    for name in CASES:
        if only not in name:
            continue
        found = {}
        for column, (library, device) in columns.items():
            command = [sys.executable, __file__, "--peak", library, device, name]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found[column] = int(done.stdout.split()[-1])
        ratios = "   ".join(
            f"{c} {b / 1e6:7.1f} MB {b / found['torch']:5.2f}x" for c, b in found.items()
        )
        print(f"{name:28} {ratios}", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--npu", action="store_true", help="measure the npu backend too")
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--memory", action="store_true", help="peaks of memory instead of times")
    parser.add_argument("--peak", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        print(peak(*options.peak))
        return
    if options.memory:
        tell_memory(options.only, options.npu)
        return
    import torch

    import mindtorch

    torch.set_num_threads(options.threads)
    mindtorch.set_num_threads(options.threads)
    for name, (make, cpu, npu) in CASES.items():
        if options.only in name:
            steps = {"torch": make(torch, "cpu"), "cpu": make(mindtorch, "cpu")}
            if options.npu:
                steps["npu"] = make(mindtorch, "npu")
            show(name, measure(steps, options.rounds), {"cpu": cpu, "npu": npu})


if __name__ == "__main__":
    main()
