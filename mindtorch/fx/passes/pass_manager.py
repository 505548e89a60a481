"""Owns the manager of passes that are functions of a module, with constraints on their order."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import unwrap

from ...nn.modules.module import Module

Pass = Callable[..., object]
Constraint = Callable[[Pass, Pass], bool]
logger = logging.getLogger(__name__)
__all__ = [
    "PassManager", "inplace_wrapper", "log_hook", "loop_pass", "these_before_those_pass_constraint",
    "this_before_that_pass_constraint",
]  # fmt: skip


def inplace_wrapper(fn: Pass) -> Pass:
    """A pass that changes its module, as one that gives it."""

    @wraps(fn)
    def wrapped_fn(gm: object) -> object:
        fn(gm)
        return gm

    return wrapped_fn


def log_hook(fn: Pass, level: int = logging.INFO) -> Pass:
    """A pass whose result is written to the log."""

    @wraps(fn)
    def wrapped_fn(gm: object) -> object:
        value = fn(gm)
        logger.log(level, "Ran pass %s\t Return value: %s", fn, value)
        return value

    return wrapped_fn


def loop_pass(
    base_pass: Pass, n_iter: int | None = None, predicate: Callable[..., bool] | None = None
) -> Pass:
    """A pass again and again: so many times, or while `predicate` of its module holds.

    AssertionError unless one of both is given.
    """
    if not (n_iter is not None) ^ (predicate is not None):
        raise AssertionError("Exactly one of `n_iter`or `predicate` must be specified.")

    @wraps(base_pass)
    def new_pass(source: object) -> object:
        output = source
        if n_iter is not None:
            for _ in range(n_iter):
                output = base_pass(output)
        else:
            while predicate is not None and predicate(output):
                output = base_pass(output)
        return output

    return new_pass


def this_before_that_pass_constraint(this: Pass, that: Pass) -> Constraint:
    """That `this` never comes behind `that`."""
    return lambda a, b: not (a == that and b == this)


def these_before_those_pass_constraint(these: Pass, those: Pass) -> Constraint:
    """The same of all passes that are wrapped around those."""
    return lambda a, b: not (unwrap(a) == those and unwrap(b) == these)


class PassManager:
    """Runs passes in an order that holds its constraints."""

    def __init__(
        self, passes: Sequence[Pass] | None = None, constraints: Sequence[Constraint] | None = None
    ):
        self.passes = list(passes or ())
        self.constraints = list(constraints or ())
        self._validated = False

    @classmethod
    def build_from_passlist(cls, passes: Sequence[Pass]) -> PassManager:
        """A manager of passes without constraints."""
        return cls(passes)

    def add_pass(self, _pass: Pass) -> None:
        """Append a pass."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Constraint) -> None:
        """Append a constraint."""
        self.constraints.append(constraint)
        self._validated = False

    def remove_pass(self, _passes: Sequence[str]) -> None:
        """Leave out the passes of these names."""
        self.passes = [p for p in self.passes if p.__name__ not in _passes]
        self._validated = False

    def replace_pass(self, _target: Pass, _replacement: Pass) -> None:
        """Put a pass in the place of those with another's name."""
        same = _target.__name__
        self.passes = [_replacement if p.__name__ == same else p for p in self.passes]
        self._validated = False

    def validate(self) -> None:
        """RuntimeError where the order breaks a constraint."""
        if self._validated:
            return
        for constraint in self.constraints:
            for at, first in enumerate(self.passes):
                for second in self.passes[at + 1 :]:
                    if not constraint(first, second):
                        raise RuntimeError(
                            "pass schedule constraint violated. Expected"
                            f" {first} before {second} but found {first} at index {at} and"
                            f" {second} at index{self.passes.index(second)} in pass list."
                        )
        self._validated = True

    def __call__(self, source: Module) -> object:
        self.validate()
        out: object = source
        for _pass in self.passes:
            out = _pass(out)
        return out
