"""Owns one worker of `check` over the instrumented simulator: the only door to the check engine."""

from __future__ import annotations

import resource
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Final

from mindtorch_npu.conformance.cases.cases import CaseFilter
from mindtorch_npu.conformance.record.result import FAILING
from mindtorch_npu.conformance.run import engine
from mindtorch_npu.conformance.run.process import Process, Setup
from mindtorch_npu.conformance.run.products import Products

from . import tree
from .board import Board

_MEMORY: Final = 8 << 30  # bytes of address space: a mutant that asks for more is out of memory
_START_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What `check` says of one case: its verdict, whether that is a failure, and why; whether the
    mutant that was on met what it changes."""

    case: str
    verdict: str
    reason: str = ""
    seconds: float = 0.0
    met: bool = False

    @property
    def failing(self) -> bool:
        return self.verdict in FAILING


class WorkerFailedError(RuntimeError):
    """No worker starts over the instrumented simulator; the message is what it said."""


class Judge:
    """Runs cases one at a time with a mutant on; replaces its worker when that dies or hangs."""

    def __init__(self) -> None:
        self.board = Board()
        self.setup = Setup(home=str(tree.install()), every=True, environ={
            "ACLSIM_MUTANTS": str(self.board.path), "ACLSIM_STRICT": "error",
        })  # fmt: skip
        self.environment: dict[str, Any] = {}
        # By the product that the simulator is, "" for its own.
        self._processes: dict[str, Process] = {}
        self.served = 0  # cases since the workers started

    def __enter__(self) -> Judge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.restart()
        self.board.close()

    def restart(self) -> None:
        """End the workers; the next case gets a fresh one."""
        for process in self._processes.values():
            process.kill()
        self._processes.clear()
        self.served = 0

    def open(self, soc: str = "") -> Process:
        """The worker on a simulator of product `soc`, started if need be."""
        if soc not in self._processes:
            process = Process(replace(self.setup, soc=soc))
            hello = process.receive(_START_SECONDS)
            if not isinstance(hello, dict) or "hello" not in hello:
                process.kill()
                raise WorkerFailedError(f"{hello}: {process.last_words()}")
            resource.prlimit(process.child.pid, resource.RLIMIT_AS, (_MEMORY, _MEMORY))
            self._processes[soc] = process
            if not soc:
                self.environment = hello["hello"]
        return self._processes[soc]

    def cases(self, ops: Sequence[str], level: str) -> list[str]:
        """Names of the cases that `check --all` runs for subjects at a level, without those on
        meta."""
        self.open()
        request = engine.RunRequest(tuple(ops), CaseFilter(level), self.setup, every=True)
        return [c.id for c in engine.select(request, self.environment) if c.form != "meta"]

    def open_for(self, case: str) -> Process:
        """The worker, on the product that judges the case's operator."""
        if not self.environment:
            self.open()
        products = Products(self.setup, self.environment, compare=False)
        return self.open(products.soc(case.partition("/")[0]))

    def run(self, case: str, seconds: float = 60.0, seed: int = 0) -> Answer:
        """The verdict of one case; CRASH and HANG end the worker."""
        process = self.open_for(case)
        process.send({"cases": [case], "seed": seed, "once": True})
        answer: Answer | None = None
        while True:
            message = process.receive(seconds)
            if not isinstance(message, dict):
                self.restart()
                verdict = "HANG" if message == "late" else "CRASH"
                return answer or Answer(case, verdict)
            if "result" in message:
                found = message["result"]
                answer = Answer(case, found["verdict"], found.get("reason", ""), found["seconds"])
                if answer.verdict == "POISONED":
                    self.restart()
                    return answer
            if "done" in message and answer is not None:
                self.served += 1
                return answer


def every_op() -> tuple[str, ...]:
    """The rows and operators that `check --all` runs; those of other products last."""
    with Judge() as judge:
        judge.open()
        exported = judge.environment["exported"]
        products = Products(judge.setup, judge.environment, compare=False)
    return engine.find_ops((), (), True) + tuple(sorted(exported, key=products.soc))
