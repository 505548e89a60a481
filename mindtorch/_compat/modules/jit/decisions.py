"""Owns what a traced function read from tensors: numbers that later calls take again.

torch.jit.trace keeps a branch as it went, and a number as it was. Here the function runs each time,
and what it asks a tensor for is answered as in the trace.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import mindtorch
from mindtorch._dispatch.overrides import EVERY, hand_over
from mindtorch._tensor.geometry import Size
from mindtorch._tensor.subclass import ASKING_OPERATORS, OURS, asking, asking_operator
from mindtorch._tensor.tensor import Tensor
from mindtorch.nn.parameter import Parameter
from mindtorch.ops.spec import Op
from mindtorch.utils._pytree import tree_map

from . import state
from .recording import TraceRecorder
from .sizes import CONSTANT, SizeNumber, TracerWarning, plain_numbers
from .watching import TraceMode

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
        text = CONSTANT.format(_READ[name]) if name in _READ else _SIZES[name]
        warnings.warn(text, TracerWarning, stacklevel=6)
        return self.values[-1]

    @contextmanager
    def replay(self) -> Iterator[None]:
        """Inside, questions are answered as they were in the trace."""
        before, self.at = self.at, 0
        try:
            yield
        finally:
            self.at = before


# Files whose functions hand a call to a class.
_ASKERS = (asking.__code__.co_filename, hand_over.__code__.co_filename)


def _asked_by_program() -> bool:
    """Whether the property or method that calls this is read by code that is not ours."""
    frame = sys._getframe(2)
    while frame.f_code.co_filename in _ASKERS and frame.f_back is not None:
        frame = frame.f_back
    return not frame.f_code.co_filename.startswith(OURS)


class TracedInput(Tensor):
    """An input of a traced function, and what is computed of it."""

    _composites = EVERY
    __getattribute__ = asking(Tensor)
    __hash__ = Tensor.__hash__

    @staticmethod
    def _row_call(op: Op, form: str, raw: Sequence[Any]) -> Any:
        mode = state.CURRENT.mode or TraceMode(None, TracedInput)
        return mode.row(op, form, raw)

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
        if name in _READ or (name == "__len__" and _asked_by_program()):
            return decisions.answer(name, run)
        if name in _SIZES and decisions.at < 0 and _asked_by_program():
            warnings.warn(_SIZES[name], TracerWarning, stacklevel=5)
        mode = state.CURRENT.mode
        return run() if mode is None else mode.function(func, args, kwargs or {})

    @property
    def shape(self) -> Any:
        mode = state.CURRENT.mode
        if mode is None or not _asked_by_program():
            return Tensor.shape.__get__(self)
        return tuple.__new__(Size, [mode.size(self, dim) for dim in range(self.dim())])

    def size(self, dim: int | None = None) -> Any:
        """The shape, or one of its sizes."""
        mode = state.CURRENT.mode
        plain = Tensor.size(self, dim)  # IndexError
        if mode is None or not _asked_by_program():
            return plain
        if dim is not None:
            return mode.size(self, dim)
        return tuple.__new__(Size, [mode.size(self, at) for at in range(self.dim())])

    def numel(self) -> Any:
        """How many numbers there are."""
        mode = state.CURRENT.mode
        if mode is None or not _asked_by_program():
            return Tensor.numel(self)
        return mode.size(self, None)


for _name in ASKING_OPERATORS:
    type.__setattr__(TracedInput, _name, asking_operator(Tensor, _name))


def _as(kind: type[Tensor]) -> Callable[[object], object]:
    def convert(value: object) -> object:
        if isinstance(value, SizeNumber):
            return mindtorch.tensor(plain_numbers(value))
        if isinstance(value, Tensor) and type(value) in (Tensor, TracedInput, Parameter):
            return value.as_subclass(kind)
        return value

    return convert


def call(
    function: Callable[..., Any], decisions: Decisions, args: tuple[object, ...],
    kwargs: dict[str, object], recorder: TraceRecorder | None = None, names: Sequence[str] = (),
) -> Any:  # fmt: skip
    """The function's result, with what it reads noted, or answered in a replay.

    A `recorder` gets the steps, and the arguments by these names.
    """
    args, kwargs = tree_map(_as(TracedInput), (args, kwargs))
    mode, current = TraceMode(recorder, TracedInput), state.CURRENT
    before = current.decisions, current.mode
    current.decisions, current.mode = decisions, mode
    try:
        with mode.inside():
            mode.begin(names, args, kwargs)
            result = function(*args, **kwargs)
            mode.end(result)
    finally:
        current.decisions, current.mode = before
    result = tree_map(_as(Tensor), result)
    mode.released()
    return result
