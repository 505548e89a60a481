"""Interrupts a scenario at each line in turn and judges what is left behind.

`python tests/mindtorch/interrupt_sweep.py [SCENARIO …] [--every N] [--start N] [--lines]` raises
KeyboardInterrupt wherever Python looks for signals (as a function begins, behind each call, as a
loop turns), in the standard library's code too, or, with `--lines`, as each line of this project
begins. Afterwards

- grad mode, autocast, the engine's task and every other mode of the thread are as before, and so
  are device, stream, default dtype and the answer to SIGINT;
- no lock is held, no device memory and, unless it struck in the standard library, whose own steps
  may be left half done, no thread, process or file is left behind;
- a step of training gives the numbers that it gave before.
"""

import argparse
import dis
import gc
import io
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import click

import mindtorch as torch
from mindtorch._autograd.grad_mode import LOCAL, MODES
from mindtorch._tensor import locks as upper, subclass

ROOT = str(Path(torch.__file__).resolve().parents[1])
OURS = tuple(os.path.join(ROOT, name, "") for name in ("mindtorch", "aclnn_bindings", "cli"))
# Where Python 3.10 to 3.14 look for signals: behind these, and as a function begins.
LOOKS = {op for name, op in dis.opmap.items()
         if name.startswith("CALL") or name in ("JUMP_BACKWARD", "JUMP_ABSOLUTE")}  # fmt: skip


def step(device: str) -> list[float]:
    """A step of training under autocast, with what surrounds it."""
    torch.manual_seed(0)
    x = torch.ones(2, 3, device=device)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Dropout(0.1), torch.nn.ReLU())
    model = model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    scaler = torch.amp.GradScaler(device)
    with torch.autocast(device, torch.bfloat16):
        loss = torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False).float().sum()
    scaler.scale(loss).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer), scaler.update(), schedule.step()
    with torch.inference_mode():
        return [round(value, 5) for value in model(x).float().sum(0).tolist()]


def transforms(device: str) -> None:
    """Derivatives of functions, batches of them, and what replaces calls."""
    x = torch.ones(3, device=device)
    torch.func.vmap(torch.func.grad(lambda v: (v * v).sum()))(x[:, None])
    torch.func.jvp(torch.sin, (x,), (x,))
    torch.func.functional_call(torch.nn.Linear(3, 1).to(device), {}, x)
    torch.func.functionalize(lambda v: v.clone().add_(1))(x)
    torch.autograd.functional.jacobian(torch.exp, x)
    with torch.random.fork_rng([]), torch.device(device):
        torch.manual_seed(1)
        torch.rand(2)
    with torch.autograd.set_detect_anomaly(True):
        x.clone().requires_grad_().sum().backward()


def streams(device: str) -> None:
    """Streams, events, devices, memory."""
    side, event = torch.npu.Stream(), torch.npu.Event()
    x = torch.ones(4, device=device)
    with torch.npu.stream(side), torch.npu.device(1):
        torch.ones(4, device="npu")
    event.record()
    event.wait(side)
    torch.npu.synchronize()
    torch.npu.empty_cache()
    x.pin_memory if device == "cpu" else x.cpu().pin_memory().npu(non_blocking=True)
    x.tolist()


def loader(device: str) -> None:
    """An epoch in this process, and files."""
    data = torch.utils.data.TensorDataset(torch.arange(12.0).view(6, 2), torch.arange(6))
    for x, y in torch.utils.data.DataLoader(data, batch_size=4, shuffle=True):
        (x.to(device).sum() + y.to(device)).tolist()
    with tempfile.TemporaryDirectory() as folder:
        torch.save({"x": torch.ones(3, device=device)}, os.path.join(folder, "x.pt"))
        torch.load(os.path.join(folder, "x.pt"), map_location=device)


def workers(device: str) -> None:
    """An epoch in processes of its own."""
    data = torch.utils.data.TensorDataset(torch.arange(6.0))
    for (x,) in torch.utils.data.DataLoader(data, batch_size=3, num_workers=2):
        x.to(device).tolist()


def close(device: str) -> None:
    """The end of a session, and another."""
    from mindtorch._backends.npu import runtime

    torch.ones(2, device=device).tolist()
    runtime.cann().runtime.close()
    torch.ones(2, device=device).tolist()


def check(device: str) -> None:
    """A command with a journal and a worker."""
    from mindtorch_npu.main import group

    with tempfile.TemporaryDirectory() as folder:
        words = ["check", "relu", "--simulator", "--form", "functional", "--dtype", "float32",
                 "--layout", "contiguous", "--jobs", "1", "--journal", f"{folder}/j"]  # fmt: skip
        before, sys.stdout = sys.stdout, io.StringIO()
        try:
            group.main(words, prog_name="mindtorch-npu", standalone_mode=False)
        except click.Abort:  # what an interrupt is told as
            pass
        finally:
            sys.stdout = before


SCENARIOS: dict[str, tuple[Callable[[str], Any], str]] = {
    "step cpu": (step, "cpu"), "step npu": (step, "npu"), "transforms": (transforms, "npu"),
    "streams": (streams, "npu"), "loader": (loader, "npu"), "close": (close, "npu"),
    "workers": (workers, "npu"), "check": (check, "npu"),
}  # fmt: skip


class Strike:
    """Raises KeyboardInterrupt at the moment of that number; `left` tells how many were missing."""

    def __init__(self, moment: int, lines: bool) -> None:
        self.left, self.lines = moment, lines
        self.where, self.ours = "", True

    def run(self, action: Callable[[str], Any], device: str) -> bool:
        """Whether `action` lasted until the moment."""
        sys.settrace(self._begin)
        try:
            action(device)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        return self.left <= 0

    def _begin(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        if self.lines:
            return self._line if frame.f_code.co_filename.startswith(OURS) else None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        self._count(frame)
        return self._opcode

    def _line(self, frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "line" and frame.f_lasti not in _leaving(frame.f_code):
            self._count(frame)
        return self._line

    def _opcode(self, frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "opcode" and frame.f_lasti in _behind(frame.f_code):
            self._count(frame)
        return self._opcode

    def _count(self, frame: FrameType) -> None:
        self.left -= 1
        if self.left == 0:
            sys.settrace(None)
            self.ours = frame.f_code.co_filename.startswith((*OURS, "<"))
            self.where = f"{frame.f_code.co_filename.removeprefix(ROOT)}:{frame.f_lineno}"
            raise KeyboardInterrupt


@cache
def _behind(code: CodeType) -> frozenset[int]:
    """Offsets of what follows an instruction that looks for signals, where the same handler waits:
    what is raised is raised by the instruction that looked."""
    known = list(dis.get_instructions(code))
    return frozenset(
        b.offset for a, b in pairwise(known)
        if a.opcode in LOOKS and _handler(code, a.offset) == _handler(code, b.offset)
    )  # fmt: skip


def _handler(code: CodeType, offset: int) -> int | None:
    """Where an exception at `offset` is handled; Python 3.10 has no table to ask."""
    table = getattr(dis, "_parse_exception_table", lambda _: [])(code)
    return next((entry.target for entry in table if entry.start <= offset < entry.end), None)


@cache
def _leaving(code: CodeType) -> frozenset[int]:
    """Offsets where the call of `__exit__` is prepared: a line of its own, where nothing looks."""
    known = list(dis.get_instructions(code))
    none = [i.opname == "LOAD_CONST" and i.argval is None for i in known]
    ends = [i for i in range(len(known)) if none[i : i + 3] == [True] * 3]
    return frozenset(known[j].offset for i in ends for j in range(max(i - 2, 0), i + 1))


def state() -> dict[str, Any]:
    """What an interrupt must leave as it was."""
    modes = {name: getattr(LOCAL, name) for name in vars(type(LOCAL)) if name[0] != "_"}
    return {
        **modes, "active": MODES.active, "subclasses": subclass.LOCAL.off,
        "device": torch.npu.current_device(), "dtype": torch.get_default_dtype(),
        "stream": torch.npu.current_stream() == torch.npu.default_stream(),
        "anomaly": torch.is_anomaly_enabled(), "answer": signal.getsignal(signal.SIGINT),
        "made on": str(torch.get_default_device()), "folder": os.getcwd(),
    }  # fmt: skip


def left_behind() -> dict[str, Any]:
    """What takes room: held locks, threads, processes, files, device memory."""
    lower = sys.modules["aclnn_bindings.runtime.locks"]
    held = [lock for module in (upper, lower) for lock in module._locks if lock._inner._is_owned()]
    return {
        "locks": len(held), "threads": threading.active_count(), "children": len(_children()),
        "files": len(os.listdir("/proc/self/fd")),
        "memory": [torch.npu.memory_allocated(i) for i in range(2)],
    }  # fmt: skip


def _changes(before: dict[str, Any], now: dict[str, Any]) -> str:
    return ", ".join(f"{k} {before[k]} → {now[k]}" for k in now if before[k] != now[k])


def _children() -> list[str]:
    text = Path("/proc/self/task", str(os.getpid()), "children").read_text()
    return text.split()


class Sweep:
    """Strikes one scenario at every N-th moment."""

    def __init__(self, name: str, lines: bool) -> None:
        self.name, self.lines = name, lines
        self.action, self.device = SCENARIOS[name]
        self.right = [step("npu"), step("npu")][1]
        for _ in range(2):  # what is made once, is made
            self.action(self.device)
        gc.collect()
        self.state, self.held = state(), left_behind()
        self.moments = 0

    def run(self, every: int, start: int = 1) -> Iterator[str]:
        """What went wrong, by moment."""
        moment = start
        while (strike := Strike(moment, self.lines)).run(self.action, self.device):
            self.moments += 1
            for wrong in self._judge(strike.ours):
                yield f"{self.name} {moment} {strike.where}: {wrong}"
            moment += every

    def _judge(self, ours: bool) -> Iterator[str]:
        now = state()
        if now != self.state:
            yield _changes(self.state, now)
            self.restore()
        if left_behind() != self.held:
            gc.collect()
        until = time.monotonic() + 8
        while (held := left_behind()) != self.held and time.monotonic() < until:
            time.sleep(0.02)  # a process may be ending
        if held != self.held:
            judged = held if ours else {k: held[k] for k in ("locks", "memory")}
            if wrong := _changes(self.held, judged):
                yield wrong
            self.held = held
        if (got := step("npu")) != self.right:
            yield f"a step gives {got}, not {self.right}"

    def restore(self) -> None:
        for name, value in self.state.items():
            if name in vars(type(LOCAL)):
                setattr(LOCAL, name, value)
        MODES.active, subclass.LOCAL.off = self.state["active"], self.state["subclasses"]
        torch.set_default_dtype(self.state["dtype"])
        torch.npu.set_device(self.state["device"])
        torch.npu.set_stream(torch.npu.default_stream())
        torch.autograd.set_detect_anomaly(self.state["anomaly"])
        signal.signal(signal.SIGINT, self.state["answer"])
        torch.set_default_device(None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=", ".join(SCENARIOS))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--start", type=int, default=1)
    parser.add_argument("--lines", action="store_true", help="as lines begin, reached or not")
    options = parser.parse_args()
    sys.unraisablehook = lambda _: None  # an interrupt in a finalizer is told to it
    os.register_at_fork(after_in_child=lambda: sys.settrace(None))
    bad = 0
    for name in options.scenarios or SCENARIOS:
        sweep = Sweep(name, options.lines)
        for wrong in sweep.run(options.every, options.start):
            bad += 1
            print(wrong, flush=True)
        print(f"{name}: {sweep.moments} interrupts", flush=True)
    print(f"{bad} left something wrong")
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
