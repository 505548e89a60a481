"""Owns the order of passes and running them one after the other."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, cast

from ....nn.modules.module import Module
from ...graph_module import GraphModule
from .pass_base import PassResult

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]

Pass = Callable[..., Any]
Constraint = Callable[[Pass, Pass], bool]


def _name(function: Pass) -> str:
    return function.__name__ if inspect.isfunction(function) else type(function).__name__


def pass_result_wrapper(fn: Pass) -> Pass:
    """A pass that gives a module or nothing as one that gives a PassResult."""

    @wraps(fn)
    def wrapped(gm: Module) -> PassResult | None:
        result: Any = fn(gm)
        if isinstance(result, PassResult):
            return result
        if result is None or isinstance(result, Module):
            return PassResult(cast(GraphModule, gm if result is None else result), True)
        return None

    wrapped.__name__ = _name(fn)
    return wrapped


def this_before_that_pass_constraint(this: Pass, that: Pass) -> Constraint:
    """A constraint of order: whether `a` may stand before `b`."""
    return lambda a, b: a != that or b != this


def _topological_sort_passes(passes: list[Pass], constraints: list[Constraint]) -> list[Pass]:
    """The passes in an order that the constraints allow; RuntimeError where there is none."""
    if not constraints:
        return passes
    later: dict[Pass, list[Pass]] = {p: [] for p in passes}
    waiting, ready = dict.fromkeys(passes, 0), deque[Pass]()
    for a in passes:
        for b in passes:
            broken = 0 if a == b else sum(not allows(a, b) for allows in constraints)
            later[b] += [a] * broken
            waiting[a] += broken
        if not waiting[a]:
            ready.append(a)
    order: list[Pass] = []
    while ready:
        order.append(ready.popleft())
        for other in later[order[-1]]:
            waiting[other] -= 1
            if not waiting[other]:
                ready.append(other)
    if circle := [p for p in waiting if waiting[p]]:
        raise RuntimeError(f"Circular dependency detected within the following passes: {circle}")
    return order


class ConstrainedPasses:
    """Passes in an order, and what it has to hold; `gap` is before the second index in errors."""

    _validated = False
    gap = " "

    def __init__(
        self, passes: Sequence[Pass] | None = None, constraints: Sequence[Constraint] | None = None
    ) -> None:
        self.passes, self.constraints = list(passes or ()), list(constraints or ())

    def add_pass(self, _pass: Pass) -> None:
        """Run one more pass."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Constraint) -> None:
        """Hold one more constraint."""
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self) -> None:
        """RuntimeError where the passes stand in an order that a constraint forbids."""
        for constraint in () if self._validated else self.constraints:
            for i, a in enumerate(self.passes):
                for j, b in enumerate(self.passes[i + 1 :]):
                    if not constraint(a, b):
                        raise RuntimeError(
                            f"pass schedule constraint violated. Expected {a} before {b} but found"
                            f" {a} at index {i} and {b} at index{self.gap}{j} in pass list."
                        )
        self._validated = True


class PassManager(ConstrainedPasses):
    """Runs passes in an order that the constraints allow, at most `steps` times over all."""

    def __init__(
        self, passes: Sequence[Pass] | None = None, constraints: Sequence[Constraint] | None = None,
        steps: int | None = None, run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(passes, constraints)
        self.steps, self.run_checks_after_each_pass = steps or 1, run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures

    def solve_constraints(self) -> None:
        """Put the passes into an order that the constraints allow."""
        self.passes = _topological_sort_passes(self.passes, self.constraints)
        self._validated = True

    def add_checks(self, check: Callable[[Module], None]) -> None:
        """Run a check of the module before all passes, and behind each where asked for."""
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.__dict__["check"] = check

    def check(self, module: Module) -> None:
        """Nothing, until there are checks."""

    def __call__(self, module: Module) -> PassResult:
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        changed = False
        for _ in range(self.steps):
            modified = False
            for at, function in enumerate(self.passes):
                try:
                    result = self._run(function, module)
                except Exception as error:
                    raise Exception(
                        f"An error occurred when running the '{_name(function)}' pass after the"
                        f" following passes: {[_name(p) for p in self.passes[:at]]}"
                    ) from error
                module, modified = result.graph_module, modified or result.modified
            changed = changed or modified
            if not modified:
                break
        return PassResult(cast(GraphModule, module), changed)

    def _run(self, function: Pass, module: Module) -> PassResult:
        result: Any = function(module)
        if not hasattr(result, "graph_module"):
            raise TypeError(
                f"The result of the pass {_name(function)} should be type PassResult.Please wrap it"
                " with pass_result_wrapper()"
            )
        if isinstance(result.graph_module, GraphModule):
            result.graph_module.recompile()
        if self.run_checks_after_each_pass:
            self.check(result.graph_module)
        return PassResult(*result)
