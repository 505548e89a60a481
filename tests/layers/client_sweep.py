"""Fails calls of a training step through torch_npu or mindtorch, each in a child of its own.

`python tests/layers/client_sweep.py torch_npu|mindtorch [--last] [--table]` starts itself under the
layers, on the simulator. It asks what `run --fault sweep` asks, but what the program imports is
imported once, and each run is a fork of that process: a tenth of the time. Of each function the
first call fails, with `--last` the last one too. Threads of a client may change the order of calls:
a row tells the call that really failed. Rows are those that the program does not survive, with
`--table` all.
"""

import contextlib
import ctypes
import fnmatch
import importlib
import json
import os
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import ModuleType

from fault_sweep import GIVING_BACK, RULES, core_in_use
from mindtorch_npu import recording

# A run of about a second hangs when it takes so long, of the clock or of a processor.
PATIENCE_S, PATIENCE_CPU_S = 120, 15


def train(torch: ModuleType) -> list[float]:
    """Two steps of a small network; what comes after a failure is the program's own."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.LayerNorm(32),
        torch.nn.GELU("tanh"), torch.nn.Linear(32, 4),
    ).to("npu")  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x, y = torch.randn(8, 16).to("npu"), torch.randint(0, 4, (8,)).to("npu")
    losses = []
    for _ in range(2):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


class Children:
    """Runs of the program in forks of this process, whose output goes to files of `folder`."""

    def __init__(self, client: str, folder: Path) -> None:
        self.torch = importlib.import_module("mindtorch" if client == "mindtorch" else "torch")
        if client == "torch_npu":
            importlib.import_module("torch_npu")
            importlib.import_module("torch._dynamo")  # else each child does, at its first step
        self.core = core_in_use()
        self.core.layers_fail_call.argtypes = (ctypes.c_uint64,)
        self.folder = folder

    def run(self, nth: int) -> dict[str, int | str] | None:
        """How the run ended whose nth call fails; None in the child, which then ends by itself."""
        output = self.folder / f"{nth}.out"
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            self.inside(nth, output)
            return None
        ended = self.wait(child)
        return {"pid": child, "nth": nth, "ended": ended, "output": output.read_text(),
                "errors": output.with_suffix(".err").read_text()[-400:]}  # fmt: skip

    def inside(self, nth: int, output: Path) -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (PATIENCE_CPU_S, PATIENCE_CPU_S + 5))
        with output.open("w") as out, output.with_suffix(".err").open("w") as errors:
            os.dup2(out.fileno(), 1), os.dup2(errors.fileno(), 2)
        self.core.layers_fail_call(nth)
        print(train(self.torch))

    @staticmethod
    def wait(child: int) -> str:
        start = time.monotonic()
        while time.monotonic() - start < PATIENCE_S:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                code = os.waitstatus_to_exitcode(status)
                if code == -signal.SIGXCPU:
                    break
                return f"signal {-code}" if code < 0 else f"exit code {code}"
            time.sleep(0.01)
        else:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        return "no end"


def inside(client: str, numbers: list[int], folder: Path) -> None:
    """In the process under the layers: one run per number; 0 fails nothing."""
    children, ended = Children(client, folder), []
    for nth in numbers:
        result = children.run(nth)
        if result is None:
            return
        ended.append(result)
        print(result["nth"], result["ended"], file=sys.stderr)
    (folder / "ended.json").write_text(json.dumps(ended))


def armed(name: str) -> bool:
    """Whether the rules count this call: the first that matches says with which code it fails."""
    rule = next(rule for rule in RULES if fnmatch.fnmatch(name, rule.split()[0]))
    return not rule.endswith(" 0")


class Session:
    """One start of the program under the layers: its calls, and how its runs ended."""

    def __init__(self, client: str, numbers: list[int]) -> None:
        from aclnn_bindings.install.library import find_install
        from aclnn_bindings.layers import session
        from aclnn_bindings.layers.interposed import interpose

        with tempfile.TemporaryDirectory(prefix="client-sweep-") as scratch:
            folder = Path(scratch)
            path = folder / "calls.rec"
            wanted = session.LayerRequest(path, [("fault", rule) for rule in RULES])
            command = [sys.executable, __file__, "--child", client, json.dumps(numbers), scratch]
            code = session.run(
                interpose(find_install(simulator=True)), command, wanted, dict(os.environ)
            ).code
            if code != 0:
                raise RuntimeError(f"the program under the layers ended with {code}")
            self.runs = json.loads((folder / "ended.json").read_text())
            self.names: dict[int, list[str]] = {run["pid"]: [] for run in self.runs}
            self.failed: dict[int, str] = {}
            for call in sorted(recording.open(path).calls(), key=lambda call: call.number):
                self.names.setdefault(call.process, []).append(call.name)
                if call.injected:
                    self.failed[call.process] = call.name


def chosen(names: list[str], last: bool) -> list[int]:
    """The places, from 1, of the first call of each name, and of the last if wanted."""
    counted = [name for name in names if armed(name)]
    first = {name: place for place, name in reversed(list(enumerate(counted, 1)))}
    final = {name: place for place, name in enumerate(counted, 1)} if last else {}
    exempt = {n for n in first if any(fnmatch.fnmatch(n, glob) for glob in GIVING_BACK)}
    places = {place for name, place in [*first.items(), *final.items()] if name not in exempt}
    return sorted(places)


def verdict(run: dict[str, str], usual: str) -> str:
    if run["ended"].startswith(("signal", "no end")):
        return run["ended"]
    if run["ended"] == "exit code 0" and run["output"] != usual:
        return "silent: " + run["output"].strip()
    return "survived, " + run["ended"]


def main(arguments: list[str]) -> int:
    if arguments[0] == "--child":
        inside(arguments[1], json.loads(arguments[2]), Path(arguments[3]))
        return 0
    client = arguments[0]
    undisturbed = Session(client, [0])
    (usual,) = undisturbed.runs
    if usual["ended"] != "exit code 0":
        raise RuntimeError(f"the program fails by itself: {usual}")
    places = chosen(undisturbed.names[usual["pid"]], "--last" in arguments)
    swept = Session(client, places)
    counts: Counter[str] = Counter()
    for run in swept.runs:
        how = verdict(run, usual["output"])
        counts[how if how.startswith("survived") else how.partition(":")[0]] += 1
        if not how.startswith("survived") or "--table" in arguments:
            print(swept.failed.get(run["pid"], "no call"), run["nth"], how, sep="\t")
            if "--table" in arguments:
                print("   ", run["errors"].strip().rpartition("\n")[2])
    print(f"{len(places)} failures:", ", ".join(f"{n} {how}" for how, n in counts.items()))
    return 0


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        sys.exit(main(sys.argv[1:]))
