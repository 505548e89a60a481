"""Owns the manager of passes that are functions of a module, with constraints on their order."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import unwrap

from ...nn.modules.module import Module
from .infra.pass_manager import (
    ConstrainedPasses,
    Constraint,
    Pass,
    this_before_that_pass_constraint,
)

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


def these_before_those_pass_constraint(these: Pass, those: Pass) -> Constraint:
    """The same of all passes that are wrapped around those."""
    return lambda a, b: not (unwrap(a) == those and unwrap(b) == these)


class PassManager(ConstrainedPasses):
    """Runs passes in an order that holds its constraints."""

    gap = ""

    @classmethod
    def build_from_passlist(cls, passes: Sequence[Pass]) -> PassManager:
        """A manager of passes without constraints."""
        return cls(passes)

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
        self.validate_constraints()

    def __call__(self, source: Module) -> object:
        self.validate()
        out: object = source
        for _pass in self.passes:
            out = _pass(out)
        return out
