"""Owns torch.jit.trace: modules and functions that compute as they did for some inputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import mindtorch
from mindtorch._compat.torchscript.graph import NotLowered
from mindtorch._compat.torchscript.unit import ClassType, LoweredFunction
from mindtorch._tensor.tensor import Tensor
from mindtorch.nn.modules.module import Module
from mindtorch.utils._pytree import tree_flatten

from . import state
from ._script import ScriptFunction, ScriptModule, wrapped
from .decisions import Decisions, call
from .recording import TraceRecorder
from .replay import Trace, frozen, of_trace
from .state import deprecated
from .tracing_checks import check_again, check_result, copied, kind_of_result


class TracedModule(ScriptModule):
    """A module inside of a traced one."""

    __module__ = "mindtorch.jit._trace"

    def _get_name(self) -> str:
        return super()._get_name() if "_loaded" in self.__dict__ else self.original_name

    def _lowered(self, name: str) -> LoweredFunction:
        return of_trace(self.__dict__.get("_lowered_methods", {}).get(name))


class TopLevelTracedModule(TracedModule):
    """A traced module: it computes as it did in the trace, and its parameters may be trained."""

    __module__ = "mindtorch.jit._trace"

    _traces: dict[str, Trace]


def _argument_names(function: Callable[..., Any], count: int) -> list[str]:
    """The names of the first arguments of a function, or of a module's `forward`."""
    plain = getattr(function, "forward", function)
    try:
        parameters = inspect.signature(plain).parameters.values()
    except (TypeError, ValueError):
        return [f"argument_{i}" for i in range(1, count + 1)]
    names = [p.name for p in parameters if p.kind is not p.VAR_POSITIONAL][:count]
    return names + [f"argument_{i + 1}" for i in range(len(names), count)]


def _traced_once(
    function: Callable[..., Any], example: object, kwargs: Mapping[str, object],
    strict: bool = True, recorder: TraceRecorder | None = None,
) -> tuple[Decisions, object]:  # fmt: skip
    args = example if isinstance(example, tuple) else (example,)
    labels = _argument_names(function, len(args)) if recorder else ()
    leaves = tree_flatten((args, kwargs))[0]
    if not all(isinstance(leaf, Tensor | int | float | bool | None) for leaf in leaves):
        names = ", ".join(type(leaf).__name__ for leaf in leaves)
        raise RuntimeError(
            f"Type 'Tuple[{names}]' cannot be traced. Only Tensors and (possibly nested) Lists,"
            " Dicts, and Tuples of Tensors can be traced"
        )
    decisions = Decisions()
    with state.tracing(), recorder.watching() if recorder else nullcontext():
        result = call(function, decisions, args, dict(kwargs), recorder, labels)
    check_result(result, strict)
    return decisions, result


def trace(
    func: Callable[..., Any], example_inputs: object = None, optimize: object = None,
    check_trace: bool = True, check_inputs: Sequence[Any] | None = None,
    *_: object, strict: bool = True, example_kwarg_inputs: dict[str, object] | None = None,
    **__: object,
) -> object:  # fmt: skip
    """`func` as it computes for these inputs: what it read of tensors stays. Deprecated in torch.

    TracerWarning where it reads; RuntimeError for inputs and results that are no tensors.
    """
    deprecated("trace")
    if hasattr(func, "forward"):
        deprecated("trace_method")
    kwargs = example_kwarg_inputs or {}
    example = () if example_inputs is None and kwargs else example_inputs
    target: Any = frozen(func) if isinstance(func, Module) else func
    again, before = (copied(example), copied(kwargs)), mindtorch.get_rng_state()
    recorder = TraceRecorder(target if isinstance(target, Module) else None)
    decisions, result = _traced_once(target, example, kwargs, strict, recorder)
    if check_trace:  # torch traces again, and warns again
        deprecated("trace_method" if hasattr(func, "forward") else "trace")
        inputs = [(i, {}) for i in check_inputs] if check_inputs is not None else [again]
        check_again(
            lambda a, k: _traced_once(target, a, k, strict), decisions, result, func, before, inputs
        )
    if not isinstance(func, Module):
        return ScriptFunction(func, decisions, lowered=_finish(recorder, func.__name__, {}))
    trace = Trace(decisions, kind_of_result(result))
    return _traced_module(func, target, {"forward": trace}, {"forward": recorder})


def _finish(
    recorder: TraceRecorder, name: str, classes: dict[tuple[str, ...], ClassType]
) -> LoweredFunction | NotLowered:
    try:
        return recorder.finish(name, classes)
    except NotLowered as error:
        return error


def _traced_module(
    original: Module, target: Module, traces: dict[str, Trace], recorders: dict[str, TraceRecorder]
) -> ScriptModule:
    """The module of some traced methods; those in it know their methods too."""
    classes: dict[tuple[str, ...], ClassType] = {}
    lowered = {name: _finish(r, name, classes) for name, r in recorders.items()}
    module = wrapped(original, TopLevelTracedModule, TracedModule, traced=traces)
    module.__dict__.update(_frozen=target)
    for name, inner in module.named_modules():
        path = tuple(name.split(".")) if name else ()
        inner.__dict__["_lowered_methods"] = classes[path].compiled if path in classes else {}
    module.__dict__["_lowered_methods"] = lowered
    return module


def trace_module(
    mod: Module, inputs: Mapping[str, object], optimize: object = None, check_trace: bool = True,
    *_: object, strict: bool = True, example_inputs_is_kwarg: bool = False, **__: object,
) -> ScriptModule:  # fmt: skip
    """A module whose named methods compute as for these inputs. Deprecated in torch too."""
    for _pass in range(1 + check_trace):  # torch traces again to compare
        deprecated("trace_method")
    target, traces, recorders = frozen(mod), {}, {}
    for name, example in inputs.items():
        function = target if name == "forward" else getattr(target, name)
        recorder = recorders[name] = TraceRecorder(target)
        named = example if example_inputs_is_kwarg and isinstance(example, dict) else {}
        example = () if named else example
        decisions, result = _traced_once(function, example, named, strict, recorder)
        traces[name] = Trace(decisions, kind_of_result(result))
    return _traced_module(mod, target, traces, recorders)
