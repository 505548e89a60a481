"""Owns what a traced function read from tensors: numbers that later calls take again.

torch.jit.trace keeps a branch as it went, and a number as it was. Here the function runs each time,
and what it asks a tensor for is answered as in the trace.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mindtorch._tensor.tensor import Tensor
from mindtorch.utils._pytree import tree_map

from . import state


class TracerWarning(Warning):
    """A trace may be wrong for other inputs."""

    __module__ = "mindtorch.jit"


_CONSTANT = (
    "Converting a tensor to a {} might cause the trace to be incorrect. We can't record the"
    " data flow of Python values, so this value will be treated as a constant in the future. This"
    " means that the trace might not generalize to other inputs!"
)
_READ = {
    "__bool__": "Python boolean", "__float__": "Python float", "__index__": "Python index",
    "__int__": "Python integer", "item": "Python number", "numpy": "NumPy array",
    "tolist": "Python list",
}  # fmt: skip
_SIZES = {
    "__len__": "Using len to get tensor shape might cause the trace to be incorrect. Recommended"
    " usage would be tensor.shape[0]. Passing a tensor of different shape might lead to errors or"
    " silently give incorrect results.",
    "__iter__": "Iterating over a tensor might cause the trace to be incorrect. Passing a tensor of"
    " different shape won't change the number of iterations executed (and might lead to errors or"
    " silently give incorrect results).",
}


class Decisions:
    """What one trace read, in order; `replay` answers from it."""

    def __init__(self) -> None:
        self.values: list[object] = []
        self.at = -1  # of the answer that comes next; below 0 while tracing

    def answer(self, name: str, read: Callable[[], object]) -> object:
        """The value that is read, and noted, or the one that the trace read."""
        if self.at >= 0:
            self.at += 1
            return self.values[self.at - 1]
        self.values.append(read())
        warnings.warn(_CONSTANT.format(_READ[name]), TracerWarning, stacklevel=6)
        return self.values[-1]

    @contextmanager
    def replay(self) -> Iterator[None]:
        """Inside, questions are answered as they were in the trace."""
        before, self.at = self.at, 0
        try:
            yield
        finally:
            self.at = before


class TracedInput(Tensor):
    """An input of a traced function, and what is computed of it."""

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> object:  # fmt: skip
        name, decisions = getattr(func, "__name__", ""), state.CURRENT.decisions

        def run() -> object:
            usual: Callable[..., object] = getattr(super(TracedInput, cls), "__torch_function__")  # noqa: B009
            return usual(func, types, args, kwargs or {})

        if decisions is None:
            return run()
        if name in _READ:
            return decisions.answer(name, run)
        if name in _SIZES and decisions.at < 0:
            warnings.warn(_SIZES[name], TracerWarning, stacklevel=5)
        return run()


def _as(kind: type[Tensor]) -> Callable[[object], object]:
    def convert(value: object) -> object:
        if isinstance(value, Tensor) and type(value) in (Tensor, TracedInput):
            return value.as_subclass(kind)
        return value

    return convert


def call(
    function: Callable[..., Any], decisions: Decisions, args: tuple[object, ...],
    kwargs: dict[str, object],
) -> object:  # fmt: skip
    """The function's result, with what it reads noted, or answered in a replay."""
    args, kwargs = tree_map(_as(TracedInput), (args, kwargs))
    before, state.CURRENT.decisions = state.CURRENT.decisions, decisions
    try:
        result = function(*args, **kwargs)
    finally:
        state.CURRENT.decisions = before
    return tree_map(_as(Tensor), result)
