"""Owns the mode in which a traced function runs: it sees each call, and tells the recorder."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import BuiltinFunctionType
from typing import Any, TypeVar

import mindtorch
from mindtorch._dispatch.builtins import LAYERS
from mindtorch._dispatch.overrides import TorchFunctionMode, _is_python, alone
from mindtorch._tensor.device import device as Device
from mindtorch._tensor.tensor import Tensor
from mindtorch.fx.aten_calls import aten_call_of_function, aten_call_of_row, body_of
from mindtorch.fx.casts import call_of_cast, cast_of
from mindtorch.fx.fake import outside
from mindtorch.ops.aten_overloads import Call, call_of_function
from mindtorch.ops.spec import Op
from mindtorch.utils._pytree import tree_map

from . import state
from .frames import as_given, caller, names_in, parameters
from .recording import TraceRecorder, size_of
from .sizes import SizeNumber, TracerWarning, plain_numbers
from .traced_calls import indexed, is_place, spelled

R = TypeVar("R")

_CONSTANTS = (
    "torch.{} results are registered as constants in the trace. You can safely ignore this warning"
    " if you use this function to create tensors out of constant variables that would be the same"
    " every time you call this function. In any other case, this might cause the trace to be"
    " incorrect."
)


class TraceMode(TorchFunctionMode):
    """Sees each call of a traced function; `recorder` is None in a replay."""

    def __init__(self, recorder: TraceRecorder | None, kind: type[Tensor]):
        self.recorder, self.kind = recorder, kind
        self.constants: list[Tensor] = []
        self.names: dict[int, str] = {}  # of the function of torch's Python that is at work

    inside = alone

    def tell(self, step: Callable[[TraceRecorder], R]) -> R | None:
        """What a step of the recorder gives; None in a replay, and where it cannot be noted."""
        recorder = self.recorder
        if recorder is not None and recorder.problem is None:
            try:
                return step(recorder)
            except Exception as error:
                recorder.problem = error
        return None

    def begin(self, names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Note the arguments of the traced function by their names."""
        for name, value in (*zip(names, args, strict=False), *kwargs.items()):
            self.tell(partial(TraceRecorder.input, name=name, value=value))
        self.tell(TraceRecorder.started)

    def end(self, result: Any) -> None:
        """Note the result."""
        self.tell(lambda recorder: setattr(recorder, "returned", recorder.result(result)))

    def size(self, tensor: Tensor, dim: int | None) -> Any:
        """A size that the program reads, or how many numbers there are."""
        noted = self.tell(lambda recorder: recorder.size(tensor, dim, caller()))
        return SizeNumber.of(size_of(tensor, dim)) if noted is None else noted

    def adopted(self, result: Any) -> Any:
        """A call's result, whose tensors are of the class that traces watch."""

        def adopt(value: Any) -> Any:
            if type(value) is Tensor:
                object.__setattr__(value, "__class__", self.kind)
                self.constants.append(value)
            return value

        return tree_map(adopt, result)

    def released(self) -> None:
        """Let the tensors of a trace be plain ones."""
        for tensor in self.constants:
            object.__setattr__(tensor, "__class__", Tensor)

    def _run(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        args, kwargs = tree_map(plain_numbers, (tuple(args), dict(kwargs)))
        with outside():
            return function(*args, **kwargs)

    def row(self, op: Op, form: str, raw: Sequence[Any]) -> Any:
        """A row's call."""
        raw = as_given(op, raw)
        call, run, args, kwargs = aten_call_of_row(op, form, raw)
        if call is None and body_of(op) is not None:
            return self._followed(op, raw)
        result = self.adopted(self._run(run, args, kwargs))
        self.tell(lambda recorder: self._record(recorder, op, call, raw, result))
        return result

    def _followed(self, op: Op, raw: Sequence[Any]) -> Any:
        """A row that torch has in Python: the calls in it, by the names of its arguments."""
        before = self.names
        if self.recorder is not None and "nn" in op.places and _is_python(op):
            self.names = parameters(op, raw)
        try:
            with self.inside():
                return body_of(op)(*raw)
        finally:
            self.names = before

    def _record(
        self, recorder: TraceRecorder, op: Op, call: Call | None, raw: Sequence[Any], result: Any
    ) -> None:  # fmt: skip
        frame = caller()
        names = self.names or names_in(frame)
        if "nn" in op.places and _is_python(op) and op.base_name not in LAYERS:
            names = parameters(op, raw)
        recorder.call(spelled(op, call), result, frame, names)

    def whole(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """A call whose steps nobody sees."""
        current = state.CURRENT
        before, current.mode, current.decisions = (current.mode, current.decisions), None, None
        try:
            return self.adopted(self._run(function, args, kwargs))
        finally:
            current.mode, current.decisions = before

    def script(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        """A call of a scripted function, which is one step."""

        def run(*args: Any, **kwargs: Any) -> Any:
            with state.scripting():
                return function(*args, **kwargs)

        result = self.whole(run, args, kwargs)
        self.tell(lambda recorder: recorder.script(function, args, result))
        return result

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        return self.kind.__torch_function__(func, types, args, kwargs or {})

    def function(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a function that is no row."""
        name = func.__name__
        if name in ("tensor", "as_tensor", "from_numpy") and self.recorder is not None:
            warnings.warn(_CONSTANTS.format(name), TracerWarning, stacklevel=4)
        if name == "tensor":
            return self._constant(self._run(func, args, kwargs))
        cast = cast_of(name, args, kwargs)
        call = call_of_cast(args[0], cast) if cast else aten_call_of_function(func, args, kwargs)
        if call is not None:
            result = self.adopted(self._run(func, args, kwargs))
            self._note(call, result)
            return result
        if self.recorder is not None and name in ("__getitem__", "__setitem__"):
            items = args[1] if isinstance(args[1], tuple) else (args[1],)
            if all(is_place(item) for item in items):
                with self.inside():
                    return indexed(args[0], items, *args[2:])
        inner = inspect.unwrap(func)
        if isinstance(inner, BuiltinFunctionType):  # which asks again
            return self._run(func, args, kwargs)
        with self.inside():
            return inner(*args, **kwargs)

    def _note(self, call: Call, result: Any) -> None:
        frame = caller()
        self.tell(lambda recorder: recorder.call(call, result, frame, names_in(frame)))

    def filled(self, tensor: Tensor, value: Any) -> None:
        """Write one number everywhere; a number of Python is a tensor of the same dtype."""
        if not isinstance(value, Tensor):
            value = self._run(mindtorch.tensor, (value,), {"dtype": tensor.dtype})
        self._run(Tensor.fill_, (tensor, value), {})
        self._note((mindtorch.ops.aten.fill_.Tensor, (tensor, value), {}), tensor)

    def _constant(self, tensor: Tensor) -> Tensor:
        """A tensor of the program's numbers: a constant, moved and detached."""
        source = tensor.clone()
        self.adopted(tensor)
        call = call_of_function("to", (source,), {"device": Device("cpu"), "dtype": tensor.dtype})
        detached = call_of_function("detach", (tensor,), {})
        if call is not None and detached is not None:
            self._note(call, tensor)
            self._note(detached, tensor)
        return tensor
