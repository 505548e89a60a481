"""Fails each call of a scenario in turn, in one process, and judges what mindtorch makes of it.

`python tests/layers/fault_sweep.py SCENARIO [--every N] [--table]` starts itself under the layers,
on the simulator. A failure is taken well when

- it is told as a BindingError (an AclError, unless a constructor gave NULL) that names the call,
  at once or at the next use, or does no harm: the scenario ends with its undisturbed result;
- the device and the other one compute afterwards, without a new process;
- nothing stays allocated, and at the end of the session the simulator knows of no handle left,
  unless what failed was the giving back itself.
"""

import ctypes
import fnmatch
import gc
import io
import json
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

# What a call answers when it fails on hardware; those that cannot be asked (texts) are left out.
RULES = (
    "aclGetRecentErrMsg 0 armed 0",
    "aclsim* 0 armed 0",
    "aclrtMalloc* 0 armed 207001",
    "aclnn* 0 armed 561000",
    "* 0 armed 500000",
)
GIVING_BACK = ("aclDestroy*", "aclSetAclOpExecutorRepeatable", "aclrtDestroy*", "aclrtFree*",
               "acl*Finalize*", "aclrtResetDevice", "aclrtSetCurrentContext", "aclrtSetDevice",
               "aclrtSynchronizeDevice*")  # fmt: skip


def step(torch: Any) -> Any:
    """Forward, backward and update of a small network."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.LayerNorm(8), torch.nn.GELU(), torch.nn.Linear(8, 3)
    ).to("npu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x, y = torch.ones(5, 4).npu(), torch.tensor([0, 1, 2, 1, 0]).npu()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return [round(loss.item(), 5), *model[0].bias.cpu().tolist()]


def life(torch: Any) -> Any:
    """Close the session, open it again, compute."""
    from mindtorch._backends.npu import runtime

    runtime.cann().runtime.close()
    return (torch.arange(4.0).npu() * 2).tolist()


def streams(torch: Any) -> Any:
    """Streams and events that wait for each other, pinned copies, a stream that dies."""
    x = torch.arange(8.0, device="npu")
    side, start, end = torch.npu.Stream(), torch.npu.Event(True), torch.npu.Event(True)
    start.record()
    with torch.npu.stream(side):
        side.wait_event(start)
        y = x * 2
        y.record_stream(torch.npu.current_stream())
        host = torch.ones(8).pin_memory()
        y += host.to("npu", non_blocking=True)
        end.record()
    torch.npu.current_stream().wait_stream(side)
    total = (y + x).sum()
    end.synchronize()
    side.query()
    end.query()
    start.elapsed_time(end)
    side.synchronize()
    torch.npu.synchronize()
    del side
    return total.item()


def memory(torch: Any) -> Any:
    """Blocks of many sizes, a cache emptied, figures asked for."""
    blocks = [torch.full((1 << k,), 3.0, device="npu") for k in range(4, 24, 3)]
    torch.npu.mem_get_info()
    del blocks[::2]
    torch.npu.empty_cache()
    big = torch.zeros(1 << 21, device="npu")
    torch.npu.memory_stats()
    return (big[:16] + blocks[0][:16]).sum().item()


def devices(torch: Any) -> Any:
    """Work on both devices, and copies between them."""
    x = torch.arange(6.0, device="npu:1")
    y = x.to("npu:0") + 1
    with torch.npu.device(1):
        z = torch.ones(6, device="npu") * y.to("npu:1")
    torch.npu.synchronize(1)
    return z.tolist()


def check(torch: Any) -> Any:
    """Cases of `check` in this process: a failure is a case that fails and names the call."""
    from mindtorch_npu.conformance.cases.case import parse
    from mindtorch_npu.conformance.run.worker import Worker

    from aclnn_bindings import BindingError
    from mindtorch._backends.npu import runtime

    worker = Worker({"device": "cpu"}, io.StringIO())
    worker.device, worker.cann = "npu:0", runtime.cann()
    results = [worker.case(parse(name), 0, {}) for name in CASES]
    told = [r.reason for r in results if r.verdict != "PASS"]
    if told:
        raise BindingError(told[0])
    return [r.verdict for r in results]


def careless(torch: Any) -> Any:
    """A program that takes failures badly in each way, to see that the sweep says so."""
    from aclnn_bindings.call.specs import RawHandle
    from mindtorch._backends.npu import runtime

    functions = runtime.cann().functions
    try:
        x = torch.ones(3).npu() + 1
    except RuntimeError:
        return "swallowed"
    scalar = functions.aclCreateScalar(b"\0" * 4, 0)
    x = x * 2
    try:
        y = x.sum().item()
    except RuntimeError as error:
        raise ValueError("misnamed") from error
    functions.aclDestroyScalar(RawHandle(scalar))
    return y


CASES = (
    "add/functional/s0",
    "add/inplace/s0",
    "sum/out/s0",
    "mm/grad/s0",
    "aclnnNeg/contract-leak",
)
SCENARIOS = {f.__name__: f for f in (step, life, streams, memory, devices, check)}


# What a contract that counts handles says when one was not given back.
ALIVE = "handles more"


def gives_back(call: str) -> bool:
    return any(fnmatch.fnmatch(call, glob) for glob in GIVING_BACK)


def core_in_use() -> ctypes.CDLL:
    """The layers' core that this process's shims load: beside the table that its settings name."""
    lines = Path(os.environ["MINDTORCH_LAYERS"]).read_text().splitlines()
    table = next(line.removeprefix("table ") for line in lines if line.startswith("table "))
    return ctypes.CDLL(str(Path(table).parent / "core" / "libaclnn_layers.so"))


class Sweep:
    """One scenario, its undisturbed result, and the calls that were made to fail."""

    def __init__(self, name: str, every: int) -> None:
        import mindtorch as torch

        self.torch, self.every = torch, every
        self.scenario = {**SCENARIOS, "careless": careless}[name]
        self.core = core_in_use()
        self.core.layers_fail_call.restype = ctypes.c_uint64
        self.core.layers_fail_call.argtypes = (ctypes.c_uint64,)
        self.core.layers_failed_call.restype = ctypes.c_char_p
        self.usual = self.scenario(torch)
        gc.collect()
        gc.freeze()  # modules live to the end: the collections of each trial need not walk them
        self.base = self.allocated()
        self.report = Path(os.environ["ACLSIM_REPORT"])
        self.counts: Counter[tuple[str, str]] = Counter()
        self.wrong: list[tuple[int, str, str]] = []
        self.leaks: Counter[str] = Counter()
        self.left("")  # what was left before is not this scenario's

    def allocated(self) -> list[int]:
        return [self.torch.npu.memory_allocated(index) for index in range(2)]

    def run(self) -> None:
        nth = 1
        while self.trial(nth):
            nth += self.every

    def trial(self, nth: int) -> str | None:
        """The call that failed, or None when there are fewer."""
        from aclnn_bindings import BindingError

        told: BaseException | None = None
        outcome = None
        self.core.layers_fail_call(nth)
        try:
            outcome = self.scenario(self.torch)
            gc.collect()
        except BaseException as error:
            told = error.with_traceback(None)
        call = (self.core.layers_failed_call() or b"").decode()
        self.core.layers_fail_call(0)
        if not call:
            return None
        how = "told"
        if told is None:
            how = "absorbed" if outcome == self.usual else "wrong result"
        elif not isinstance(told, BindingError):
            how = f"{type(told).__name__}: {told}"
        elif call not in str(told) and not (ALIVE in str(told) and gives_back(call)):
            how = f"another call is named: {told}"
        del told, outcome
        later = self.usable()
        if later:
            how = "told later" if how in ("absorbed", "wrong result") and call in later else later
        if how in ("told", "absorbed", "told later"):
            how = self.left(call) or how
        self.counts[call, how.partition("\n")[0]] += 1
        if how not in ("told", "absorbed", "told later"):
            self.wrong.append((nth, call, how))
        return call

    def usable(self) -> str:
        """What a device says that does not compute; the first failure may still be told here."""
        gc.collect()
        said = ""
        for _ in range(2):
            try:
                for device in ("npu:0", "npu:1"):
                    got = (self.torch.ones(2, device=device) + 1).tolist()
                    if got != [2.0, 2.0]:
                        return f"{device} computes {got}"
            except BaseException as error:
                if said:
                    return f"not usable: {type(error).__name__}: {error}"
                said = str(error)
            else:
                return said
        return said

    def left(self, call: str) -> str:
        """What the failure left behind, in the allocator or in the session."""
        from mindtorch._backends.npu import runtime

        gc.collect()
        if (allocated := self.allocated()) != self.base and self.scenario is not life:
            return f"allocated {allocated}, before {self.base}"
        runtime.cann().runtime.close()
        before, self.leaks = self.leaks, self.leaked()
        self.torch.ones(1, device="npu:0"), self.torch.ones(1, device="npu:1")
        more = self.leaks - before
        if call.startswith("aclnn") and not call.endswith("GetWorkspaceSize"):
            del more["leak: aclOpExecutor"]  # a phase 2 that does not run leaves its executor
        if gives_back(call):
            return ""
        return "; ".join(f"{what} x{count}" for what, count in more.items())

    def leaked(self) -> Counter[str]:
        """What the last end of a session found: handles of earlier sessions are in it too."""
        lines = self.report.read_text().splitlines() if self.report.exists() else []
        self.report.write_text("")
        counts: Counter[str] = Counter()
        for row in map(json.loads, lines):
            handle, _, number = row["object"].partition(" x")
            counts[f"{row['finding']}: {handle}"] += int(number or 1)
        return counts


def sweep(name: str, every: int) -> dict[str, Any]:
    """In the child: rows by call and how it was taken, and what was taken badly."""
    run = Sweep(name, every)
    run.run()
    rows = sorted([*key, count] for key, count in run.counts.items())
    return {"scenario": name, "failures": sum(run.counts.values()), "wrong": run.wrong,
            "rows": rows}  # fmt: skip


def start(**scenarios: int) -> list[dict[str, Any]]:
    """What a child found, under the layers on the simulator: of each scenario every N-th call."""
    from aclnn_bindings.install.library import find_install
    from aclnn_bindings.layers import session
    from aclnn_bindings.layers.interposed import interpose

    with tempfile.TemporaryDirectory(prefix="fault-sweep-") as folder:
        result = Path(folder) / "result.json"
        environ = {**os.environ, "ACLSIM_STRICT": "report", "ACLSIM_DEVICES": "2",
                   "ACLSIM_REPORT": str(Path(folder) / "report")}  # fmt: skip
        command = [sys.executable, __file__, "--child", json.dumps(scenarios), str(result)]
        wanted = session.LayerRequest(None, [("fault", rule) for rule in RULES])
        ended = session.run(interpose(find_install(simulator=True)), command, wanted, environ)
        if ended.code != 0 or not result.exists():
            raise RuntimeError(f"the sweep of {', '.join(scenarios)} ended with {ended.code}")
        results: list[dict[str, Any]] = json.loads(result.read_text())
        return results


def main(arguments: list[str]) -> int:
    if arguments[0] == "--child":
        scenarios = json.loads(arguments[1])
        results = [sweep(name, every) for name, every in scenarios.items()]
        Path(arguments[2]).write_text(json.dumps(results))
        return 0
    every = int(arguments[arguments.index("--every") + 1]) if "--every" in arguments else 1
    names = SCENARIOS if arguments[0] == "all" else arguments[:1]
    bad = 0
    for result in start(**dict.fromkeys(names, every)):
        bad += len(result["wrong"])
        print(f"{result['scenario']}: {result['failures']} failures, {len(result['wrong'])} badly")
        for row in [*(result["rows"] if "--table" in arguments else ()), *result["wrong"]]:
            print("   ", *row, sep="\t")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
