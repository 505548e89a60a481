"""Owns what torch.jit.script gives: modules and functions that run as Python.

A scripted module shares the parameters of its original, and has state of its own beside them. It
is of a class of its own below the original's, so that each method works.
"""

from __future__ import annotations

import copy
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import update_wrapper
from typing import Any, NamedTuple, NoReturn

from mindtorch._compat.torchscript.classes import check_assignment, methods_of, module_type
from mindtorch._compat.torchscript.compiler import compiled
from mindtorch._compat.torchscript.errors import at_boundary
from mindtorch._compat.torchscript.graph import NotLowered
from mindtorch._compat.torchscript.schemas import ScriptDeclaration
from mindtorch._compat.torchscript.unit import LoweredFunction, modifier_of
from mindtorch._compat.torchscript.views import (
    ConstMap,
    GraphView,
    code_of,
    code_with_constants_of,
    folded_graph_of,
    graph_of,
    inlined_graph_of,
)
from mindtorch.nn.modules.module import Module

from . import state
from .arguments import passed
from .decisions import Decisions
from .failures import Error, interpreted
from .replay import TABLES, of_frozen, of_trace, replayed


class ScriptModule(Module):
    """Base of modules that torch.jit makes."""

    original_name: str
    original_class: type[Module]
    _base: type[ScriptModule]

    def _get_name(self) -> str:
        return "RecursiveScriptModule"

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            raise AttributeError(
                f"'RecursiveScriptModule' object has no attribute '{name}'"
            ) from None

    __repr__ = Module.__repr__  # of containers too

    def extra_repr(self) -> str:
        """The original's class."""
        return f"original_name={self.original_name}"

    def save(self, f: Any, **kwargs: Mapping[str, object] | None) -> None:
        """torch.jit.save of this module."""
        from . import save

        save(self, f, **kwargs)

    def save_to_buffer(self, **kwargs: Mapping[str, object] | None) -> bytes:
        """What `save` writes."""
        buffer = io.BytesIO()
        self.save(buffer, **kwargs)
        return buffer.getvalue()

    def _lowered(self, name: str) -> LoweredFunction:
        function = at_boundary(lambda: module_type(self).method(name))
        if function is None:
            raise AttributeError(f"Method '{name}' is not defined.")
        return function

    @property
    def code(self) -> str:
        """The text of the lowered `forward`."""
        return code_of(self._lowered("forward"))

    @property
    def graph(self) -> GraphView:
        """The graph of `forward`."""
        return graph_of(self._lowered("forward"))

    @property
    def inlined_graph(self) -> GraphView:
        """The graph of `forward`, with those that it calls put in."""
        return inlined_graph_of(self._lowered("forward"))

    @property
    def code_with_constants(self) -> tuple[str, ConstMap]:
        """The text of `forward`, and the tensors that it names."""
        return code_with_constants_of(self._lowered("forward"))

    def __reduce__(self) -> tuple[Any, ...]:
        dropped = ("_script_type", "_lowered_methods", "_flat_weight_refs")
        members = {k: v for k, v in self.__dict__.items() if k not in dropped}
        return _loaded, (self._base, self.original_class, members)


class RecursiveScriptModule(ScriptModule):
    """A scripted module."""

    __module__ = "mindtorch.jit._script"

    def __setattr__(self, name: str, value: Any) -> None:
        known = self.__dict__.get("_script_type")
        if known is not None:
            check_assignment(known, name, value)
        super().__setattr__(name, value)

    def __call__(self, *args: object, **kwargs: object) -> object:
        if not state.CURRENT.scripting:
            args, kwargs = _bound(lambda: self._lowered("forward"), (self, *args), kwargs)
            args = args[1:]
        with interpreted(), state.scripting():
            return super().__call__(*args, **kwargs)


def _refusing(name: str) -> Callable[..., NoReturn]:
    def refuse(self: Module, *args: object, **kwargs: object) -> NoReturn:
        raise RuntimeError(f"{name} is not supported on ScriptModules")

    return refuse


_REFUSED = "bfloat16 compile get_buffer get_parameter get_submodule requires_grad_ set_submodule"
_HOOKS = [n for n in dir(Module) if n.startswith("register_") and n.endswith("_hook")]
for _name in (*_REFUSED.split(), "to_empty", "ipu", "mtia", "xpu", *_HOOKS):
    setattr(RecursiveScriptModule, _name, _refusing(_name))


class _Lowered:
    """What is shown of a function or a method that has a lowered form."""

    @property
    def _lowered(self) -> LoweredFunction:
        raise NotImplementedError

    @property
    def schema(self) -> ScriptDeclaration:
        """The declaration."""
        return self._lowered.schema

    @property
    def code(self) -> str:
        """The text of the lowered program."""
        return code_of(self._lowered)

    @property
    def graph(self) -> GraphView:
        """The graph."""
        return graph_of(self._lowered)

    @property
    def inlined_graph(self) -> GraphView:
        """The graph, with those that it calls put in."""
        return inlined_graph_of(self._lowered)

    @property
    def code_with_constants(self) -> tuple[str, ConstMap]:
        """The text, and the tensors that it names."""
        return code_with_constants_of(self._lowered)


class ScriptMethod(_Lowered):
    """A method of a scripted module, bound to it, with its lowered form."""

    def __init__(self, owner: Module, function: Callable[..., Any]):
        update_wrapper(self, function)
        self.owner, self._function, self.name = owner, function, function.__name__

    def __call__(self, *args: object, **kwargs: object) -> object:
        traced = not isinstance(self.owner, RecursiveScriptModule)
        args = (self.owner, *args)
        if state.CURRENT.scripting and modifier_of(self._function) == "unused":
            raise Error("This Python function is annotated to be ignored and cannot be run")
        if traced or not state.CURRENT.scripting:
            args, kwargs = _bound(lambda: self._lowered, args, kwargs)
        if traced:
            return self._function(*args, **kwargs)
        with interpreted(), state.scripting():
            return self._function(*args, **kwargs)

    @property
    def _lowered(self) -> LoweredFunction:
        owner: Any = self.owner
        lowered: LoweredFunction = owner._lowered(self.name)
        return lowered

    def __repr__(self) -> str:
        return f"<torch.ScriptMethod object at {id(self):#x}>"


ScriptMethod.__module__ = "torch"


class _Bound:
    """Gives a scripted module's method with its lowered form."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function

    def __get__(self, owner: Module | None, cls: type) -> object:
        return self.function if owner is None else ScriptMethod(owner, self.function)


def _class(
    base: type[ScriptModule], original: type[Module], traced: Iterable[str] = ()
) -> type[ScriptModule]:
    names: dict[str, object] = {"__module__": base.__module__, "original_class": original,
                                "original_name": original.__name__, "_base": base}  # fmt: skip
    if issubclass(base, RecursiveScriptModule):
        names.update({n: _Bound(f) for n, f in methods_of(original).items() if n[:2] != "__"})
    names.update({name: _Bound(of_frozen(name)) for name in traced})
    return type(base.__name__, (base, original), names)


def _remade(
    base: type[ScriptModule], original: type[Module], members: dict[str, Any]
) -> ScriptModule:
    module = object.__new__(_class(base, original, members.get("_traces", ())))
    module.__dict__.update(members)
    return module


def _loaded(
    base: type[ScriptModule], original: type[Module], members: dict[str, object]
) -> ScriptModule:  # fmt: skip
    """A module of a file, which torch shows as a scripted one."""
    module = _remade(base, original, {"_traces": members.get("_traces", ())})
    module.__setstate__({**members, "_loaded": True})
    type(module).__name__ = type(module).__qualname__ = "RecursiveScriptModule"
    return module


class Attribute(NamedTuple):
    """A value with the type that a compiler would see."""

    value: Any
    type: Any


def wrapped(
    module: Module, base: type[ScriptModule], inner: type[ScriptModule],
    memo: dict[int, ScriptModule] | None = None, traced: Mapping[str, Decisions] | None = None,
) -> ScriptModule:  # fmt: skip
    """A module of `base` with the parameters of another; those in it are of `inner`."""
    memo = {} if memo is None else memo
    if id(module) in memo:
        return memo[id(module)]
    members = {n: v.value if isinstance(v, Attribute) else v for n, v in module.__dict__.items()}
    members.update({n: copy.copy(members[n]) for n in members if n in TABLES})
    if traced is not None:
        members["_traces"] = traced
    if base is not RecursiveScriptModule:  # hooks are in the trace
        members.update({n: type(v)() for n, v in members.items() if n.endswith("_hooks")})
    original = getattr(type(module), "original_class", type(module))
    if base is RecursiveScriptModule and "_script_type" not in members:
        with suppress(NotImplementedError, RuntimeError):  # of what cannot be lowered
            members["_script_type"] = module_type(module)
    module_again = _remade(base, original, members)
    memo[id(module)] = module_again
    for name, child in module_again._modules.items():
        module_again._modules[name] = None if child is None else wrapped(child, inner, inner, memo)
    return module_again


def without_parameters(module: ScriptModule) -> ScriptModule:
    """A scripted module whose parameters and buffers are plain members, constants of its graph."""
    result = wrapped(module, RecursiveScriptModule, RecursiveScriptModule)
    for inner in result.modules():
        for table in (inner._parameters, inner._buffers):
            values = {n: None if v is None else v.detach() for n, v in table.items()}
            table.clear()
            inner.__dict__.update(values)
    return result


class FrozenModule(RecursiveScriptModule):
    """What freezing gives: a module without members, but for those that were to stay."""

    def __init__(self, whole: ScriptModule, stays: Sequence[str]):
        super().__init__()
        for name in stays:
            if not hasattr(whole, name):
                raise RuntimeError(f"Unknown name: {name}")
        self.__dict__.update(_whole=(whole,), _stays=tuple(stays), training=False)
        self.__dict__.update(original_name=whole.original_name)

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__.get("_stays", ()):
            return getattr(self._whole[0], name)
        return super().__getattr__(name)

    def forward(self, *args: object, **kwargs: object) -> object:
        """What the whole module computes."""
        return self._whole[0].forward(*args, **kwargs)

    def _lowered(self, name: str) -> LoweredFunction:
        return self._whole[0]._lowered(name)

    @property
    def graph(self) -> GraphView:
        """The graph of `forward`, with its members' values."""
        return folded_graph_of(self._lowered("forward"), self._whole[0])

    def __reduce__(self) -> tuple[Any, ...]:
        return _frozen, (self._whole[0], self._stays)


def _frozen(whole: ScriptModule, stays: Sequence[str]) -> FrozenModule:
    """A frozen module of a file."""
    return FrozenModule(whole, stays)


FrozenModule.__name__ = FrozenModule.__qualname__ = "RecursiveScriptModule"


class ScriptFunction(_Lowered):
    """A scripted or a traced function."""

    def __init__(
        self, function: Callable[..., Any], decisions: Decisions | None = None,
        lowered: LoweredFunction | NotLowered | None = None,
    ):  # fmt: skip
        update_wrapper(self, function)
        self._function, self._decisions, self._traced = function, decisions, lowered
        self.name: str = function.__name__

    def __call__(self, *args: object, **kwargs: object) -> object:
        if not state.CURRENT.scripting:
            args, kwargs = _bound(lambda: self._lowered, args, kwargs)
        if self._decisions is not None:
            return replayed(self._function, self._decisions, args, kwargs)
        if state.CURRENT.mode is not None:
            return state.CURRENT.mode.script(self._function, args, kwargs)
        with interpreted(), state.scripting():
            return self._function(*args, **kwargs)

    @property
    def _lowered(self) -> LoweredFunction:
        if self._decisions is not None:
            return of_trace(self._traced)
        return at_boundary(lambda: compiled(self._function))

    @property
    def qualified_name(self) -> str:
        """The name by which compiled code calls it."""
        return self._lowered.qualified

    def save(self, f: Any, **kwargs: Mapping[str, object] | None) -> None:
        """torch.jit.save of this function."""
        from . import save

        save(self, f, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        return _function, (self._function, self._decisions)

    def __repr__(self) -> str:
        return f"<torch.jit.torch.jit.ScriptFunction object at {id(self):#x}>"


def _bound(
    lowered: Callable[[], LoweredFunction], args: tuple[object, ...], kwargs: dict[str, object]
) -> tuple[tuple[object, ...], dict[str, object]]:
    """Arguments as a declaration has them; as they are for what cannot be lowered."""
    known = None
    with suppress(NotImplementedError, RuntimeError, AttributeError):
        known = lowered().schema
    return (args, kwargs) if known is None else passed(known, args, kwargs)


def _function(function: Callable[..., Any], decisions: Decisions | None) -> ScriptFunction:
    """A function of a file."""
    return ScriptFunction(function, decisions)


ScriptFunction.__module__, ScriptFunction.__qualname__ = "mindtorch.jit", "torch.jit.ScriptFunction"
