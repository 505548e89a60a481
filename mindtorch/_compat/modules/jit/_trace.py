"""Owns torch.jit.trace: modules and functions that compute as they did for some inputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from mindtorch._compat.torchscript.graph import NotLowered
from mindtorch._compat.torchscript.unit import ClassType, LoweredFunction
from mindtorch._compat.torchscript.views import saved
from mindtorch._tensor.tensor import Tensor
from mindtorch.nn.modules.module import Module
from mindtorch.utils._pytree import tree_flatten

from . import state
from ._script import ScriptFunction, ScriptModule, wrapped
from .decisions import Decisions, call
from .recording import TraceRecorder
from .replay import frozen, of_trace
from .state import deprecated
from .tracing_checks import Inputs, TraceCheck, check_result, copied


class TracedModule(ScriptModule):
    """A module inside of a traced one."""

    __module__ = "mindtorch.jit._trace"

    def _get_name(self) -> str:
        return super()._get_name() if "_loaded" in self.__dict__ else self.original_name

    def __reduce__(self) -> tuple[Any, ...]:
        load, (base, original, members) = super().__reduce__()
        known = self.__dict__.get("_lowered_methods", {}).items()
        texts = {n: saved(f) for n, f in known if isinstance(f, LoweredFunction)}
        return load, (base, original, {**members, "_lowered_methods": texts})

    def _lowered(self, name: str) -> LoweredFunction:
        return of_trace(self.__dict__.get("_lowered_methods", {}).get(name))


class TopLevelTracedModule(TracedModule):
    """A traced module: it computes as it did in the trace, and its parameters may be trained."""

    __module__ = "mindtorch.jit._trace"

    _traces: dict[str, Decisions]


def _argument_names(function: Callable[..., Any], count: int) -> list[str]:
    """The names of the first arguments of a function, or of a module's `forward`."""
    plain = getattr(function, "forward", function)
    try:
        parameters = inspect.signature(plain).parameters.values()
    except (TypeError, ValueError):
        return [f"argument_{i}" for i in range(1, count + 1)]
    names = [p.name for p in parameters if p.kind is not p.VAR_POSITIONAL][:count]
    return names + [f"argument_{i + 1}" for i in range(len(names), count)]


def _inputs(example: object) -> tuple[Any, ...]:
    """Arguments as a tuple; one tensor or dict is the only one."""
    if isinstance(example, Tensor | dict):
        return (example,)
    arguments: Any = example
    return tuple(arguments)


def _traced_once(
    function: Callable[..., Any], inputs: Inputs, strict: bool, recorder: TraceRecorder
) -> tuple[Decisions, object]:  # fmt: skip
    args, kwargs = inputs
    labels = _argument_names(function, len(args))
    leaves = tree_flatten(inputs)[0]
    if not all(isinstance(leaf, Tensor | int | float | bool | None) for leaf in leaves):
        names = ", ".join(type(leaf).__name__ for leaf in leaves)
        raise RuntimeError(
            f"Type 'Tuple[{names}]' cannot be traced. Only Tensors and (possibly nested) Lists,"
            " Dicts, and Tuples of Tensors can be traced"
        )
    decisions = Decisions()
    with state.tracing(), recorder.watching():
        result = call(function, decisions, args, kwargs, recorder, labels)
    check_result(result, strict)
    return decisions, result


def trace(
    func: Callable[..., Any], example_inputs: object = None, optimize: object = None,
    check_trace: bool = True, check_inputs: Sequence[Any] | None = None,
    check_tolerance: float = 1e-5, *_: object, strict: bool = True,
    example_kwarg_inputs: dict[str, object] | None = None, **__: object,
) -> object:  # fmt: skip
    """`func` as it computes for these inputs: what it read of tensors stays. Deprecated in torch.

    TracerWarning where it reads, or computes otherwise again; RuntimeError for inputs and results
    that are no tensors.
    """
    deprecated("trace")
    kwargs = example_kwarg_inputs or {}
    example = () if example_inputs is None and kwargs else _inputs(example_inputs)
    others: list[Inputs] = [(_inputs(i), {}) for i in check_inputs or ()]
    if isinstance(func, Module):
        deprecated("trace_method")
        return _traced_methods(func, {"forward": (example, kwargs)}, check_trace, others, strict,
                               check_tolerance)  # fmt: skip
    name = getattr(func, "__name__", type(func).__name__)

    def traced(inputs: Inputs) -> tuple[ScriptFunction, Decisions, LoweredFunction | NotLowered]:
        recorder = TraceRecorder(None)
        decisions, _ = _traced_once(func, inputs, strict, recorder)
        lowered = _finish(recorder, name, {})
        return ScriptFunction(func, decisions, lowered), decisions, lowered

    before = copied((example, kwargs))
    function, decisions, lowered = traced((example, kwargs))
    if check_trace:
        deprecated("trace")
        check = TraceCheck(function, func, lowered, traced, decisions, check_tolerance)
        for inputs in others or [before]:
            check.check(inputs)
    return function


def _finish(
    recorder: TraceRecorder, name: str, classes: dict[tuple[str, ...], ClassType]
) -> LoweredFunction | NotLowered:
    try:
        return recorder.finish(name, classes)
    except NotLowered as error:
        return error


def _traced_methods(
    module: Module, examples: Mapping[str, Inputs], checked: bool, others: list[Inputs],
    strict: bool, tolerance: float,
) -> ScriptModule:  # fmt: skip
    """The module of some traced methods; those in it know their methods too.

    ValueError for hooks of backward.
    """
    for each in module.modules():
        if each._backward_hooks:
            text = "Modules that have backward hooks assigned can't be compiled"
            raise ValueError(f"{text}: {each}")
    target = frozen(module)

    def function_of(owner: Any, name: str) -> Callable[..., Any]:
        function: Callable[..., Any] = owner if name == "forward" else getattr(owner, name)
        return function

    def traced(examples: Mapping[str, Inputs]) -> tuple[Any, dict[str, Decisions], dict[str, Any]]:
        traces: dict[str, Decisions] = {}
        recorders = {}
        for name, inputs in examples.items():
            recorder = recorders[name] = TraceRecorder(target)
            traces[name], _ = _traced_once(function_of(target, name), inputs, strict, recorder)
        classes: dict[tuple[str, ...], ClassType] = {}
        lowered = {name: _finish(r, name, classes) for name, r in recorders.items()}
        copy = wrapped(module, TopLevelTracedModule, TracedModule, traced=traces)
        copy.__dict__.update(_frozen=target)
        for name, inner in copy.named_modules():
            path = tuple(name.split(".")) if name else ()
            inner.__dict__["_lowered_methods"] = classes[path].compiled if path in classes else {}
        copy.__dict__["_lowered_methods"] = lowered
        return copy, traces, lowered

    before = copied(dict(examples))
    result, decisions, lowered = traced(examples)
    if not checked:
        return cast(ScriptModule, result)
    deprecated("trace_method")
    for name in examples:

        def again(inputs: Inputs, name: str = name) -> tuple[Any, Decisions, Any]:
            copy, read, graphs = traced({name: inputs})
            return function_of(copy, name), read[name], graphs[name]

        check = TraceCheck(function_of(result, name), function_of(module, name), lowered[name],
                           again, decisions[name], tolerance)  # fmt: skip
        for inputs in others or [before[name]]:
            check.check(inputs)
    return cast(ScriptModule, result)


def trace_module(
    mod: Module, inputs: Mapping[str, object], optimize: object = None, check_trace: bool = True,
    check_inputs: Sequence[Any] | None = None, check_tolerance: float = 1e-5, *_: object,
    strict: bool = True, example_inputs_is_kwarg: bool = False, **__: object,
) -> ScriptModule:  # fmt: skip
    """A module whose named methods compute as for these inputs. Deprecated in torch too."""
    deprecated("trace_method")
    examples: dict[str, Inputs] = {}
    for name, example in inputs.items():
        named = example if example_inputs_is_kwarg and isinstance(example, dict) else {}
        examples[name] = () if named else _inputs(example), named
    return _traced_methods(mod, examples, check_trace, [], strict, check_tolerance)
