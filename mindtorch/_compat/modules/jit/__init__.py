"""Owns torch.jit: what is scripted or traced runs as Python, in modules and functions of its own
classes."""

from __future__ import annotations

import builtins
import inspect
import os
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FunctionType, UnionType
from typing import Any, Final as Final, TypeVar

import mindtorch
from mindtorch._compat.refusals import refused
from mindtorch._compat.torchscript.compiler import check_function, check_module
from mindtorch.futures import Future
from mindtorch.nn.modules.module import Module
from mindtorch.serialization._legacy import damaged_archive, damaged_zip

from . import state
from ._script import (
    Attribute,
    FrozenModule,
    RecursiveScriptModule,
    ScriptFunction,
    ScriptModule,
    without_parameters,
    wrapped,
)
from ._trace import TopLevelTracedModule, TracedModule, trace as trace, trace_module as trace_module
from .failures import Error as Error
from .sizes import TracerWarning
from .state import deprecated
from .tracing_checks import TracingCheckError as TracingCheckError

__all__ = ["Attribute", "RecursiveScriptModule", "ScriptFunction", "ScriptModule",
           "TopLevelTracedModule", "TracedModule", "TracerWarning"]  # fmt: skip

T = TypeVar("T")


def is_scripting() -> bool:
    """Whether a scripted function is at work."""
    return state.CURRENT.scripting > 0


def is_tracing() -> bool:
    """Whether a function is being traced."""
    return state.CURRENT.tracing > 0


def _same(value: Any = None, *_: object, **__: object) -> Any:
    """Gives its argument; called with settings only, gives a decorator that does so."""
    return value if callable(value) else lambda wrapped: wrapped


def _refuse_without_text(function: Callable[..., object]) -> None:
    if str(getattr(function, "__module__", "")).partition(".")[0] in ("mindtorch", "torch"):
        return
    try:
        inspect.getsource(function)
    except (OSError, TypeError) as error:
        raise OSError(
            f"Can't get source for {function}. TorchScript requires source access in order to carry"
            " out compilation, make sure original .py files are available."
        ) from error


def script(obj: object, *_: object, **__: object) -> object:
    """A module or function that runs as Python; classes as they are. Deprecated in torch too.

    RuntimeError for a lambda, TypeError for a value that is no code, OSError where the text of a
    function, or of a module's `forward`, cannot be read.
    """
    deprecated("script")
    if builtins.isinstance(obj, ScriptModule | ScriptFunction):
        return obj
    if builtins.isinstance(obj, Module):
        _refuse_without_text(obj.forward)
        check_module(obj)
        return wrapped(obj, RecursiveScriptModule, RecursiveScriptModule)
    if builtins.isinstance(obj, type | dict | list | tuple) or hasattr(obj, "_torch_script_marker"):
        return obj
    if not callable(obj) or obj is getattr(builtins, getattr(obj, "__name__", ""), None):
        raise TypeError(f"{type(obj)} is a built-in class")
    if not builtins.isinstance(obj, FunctionType):
        return obj
    _refuse_without_text(obj)
    if obj.__name__ == "<lambda>":
        code = obj.__code__
        raise RuntimeError(
            f"Expected a single top-level function: {code.co_filename}:{code.co_firstlineno}"
        )
    check_function(obj)
    return ScriptFunction(obj)


def export(fn: T) -> T:
    """`fn`, which scripting a module compiles though nothing calls it."""
    return _marked(fn, "export (compile this function even if nothing calls it)")


def _marked(fn: T, words: str) -> T:
    fn.__dict__["_torchscript_modifier"] = words
    return fn


def unused(fn: T) -> T:
    """`fn`, whose call in compiled code raises."""
    if not builtins.isinstance(fn, property):
        _marked(fn, "unused (ignored and replaced with raising of an exception)")
    return fn


def ignore(drop: Any = False, **_: object) -> Any:
    """A function that compiled code leaves to Python; with `drop=True` its call raises."""
    if callable(drop):
        return _left_to_python(drop)
    return unused if drop else _left_to_python


def _left_to_python(fn: T) -> T:
    return _marked(fn, "ignore (leave as a call to Python, cannot be torch.jit.save'd)")


def interface(obj: type[T]) -> type[T]:
    """A class whose methods are declarations: what a module put in its place must have."""
    type.__setattr__(obj, "_torchscript_interface", True)
    return obj


script_if_tracing = _script_if_tracing = _same


script_method = _same


def _overload_method(func: T) -> T:
    """`func`: a signature for the compiler that is not here."""
    return func


_overload = _overload_method


def annotate(the_type: Any, the_value: T) -> T:
    """`the_value`."""
    return the_value


def isinstance(obj: object, target_type: object) -> bool:
    """Python's isinstance, of what is in containers too."""
    origin, inner = typing.get_origin(target_type), typing.get_args(target_type)
    if builtins.isinstance(target_type, tuple):
        return any(isinstance(obj, kind) for kind in target_type)
    if origin in (typing.Union, UnionType):
        return any(isinstance(obj, kind) for kind in inner)
    if origin is list:
        return builtins.isinstance(obj, list) and all(isinstance(v, inner[0]) for v in obj)
    if origin is dict:
        return builtins.isinstance(obj, dict) and all(
            isinstance(k, inner[0]) and isinstance(v, inner[1]) for k, v in obj.items()
        )
    if origin is tuple:
        return (
            builtins.isinstance(obj, tuple)
            and len(obj) == len(inner)
            and all(isinstance(v, kind) for v, kind in zip(obj, inner, strict=True))
        )
    return builtins.isinstance(obj, origin or typing.cast(type, target_type))


def save(
    m: ScriptModule | ScriptFunction, f: Any, _extra_files: Mapping[str, object] | None = None
) -> None:
    """Write what script or trace gave; its class is found by name when it is loaded."""
    deprecated("save", "switch to `torch.export`")
    if not builtins.isinstance(m, ScriptModule | ScriptFunction):
        end = "" if builtins.isinstance(f, str | os.PathLike) else "_to_buffer"
        raise AttributeError(f"'{type(m).__name__}' object has no attribute 'save{end}'")
    mindtorch.save({"module": m, "files": dict(_extra_files or {})}, f)


class CompilationUnit:
    """Stands for compiled source: making one is refused."""

    def __init__(self, lang: Any = None, **_: object):
        raise NotImplementedError("torch.jit.CompilationUnit: mindtorch compiles nothing")


def freeze(
    mod: Any, preserved_attrs: Sequence[str] | None = None, *_: object, **__: object
) -> Any:  # fmt: skip
    """A module of constants, and the members that stay; RuntimeError for one that trains."""
    deprecated("freeze", "use `torch.compile` instead")
    if not builtins.isinstance(mod, ScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input. Please use torch.jit.script or"
            " torch.jit.trace to script your 'nn.Module'."
        )
    if getattr(mod, "training", False):
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call"
            " .eval() on your module before freezing."
        )
    scripted = builtins.isinstance(mod, RecursiveScriptModule)
    return FrozenModule(without_parameters(mod) if scripted else mod, preserved_attrs or ())


def optimize_for_inference(mod: T, *_: object, **__: object) -> T:
    """The module itself."""
    deprecated("optimize_for_inference", "use `torch.compile` instead")
    return freeze(mod) if builtins.isinstance(mod, ScriptModule) else mod


def load(
    f: Any, map_location: Any = None, _extra_files: dict[str, object] | None = None, **__: object
) -> object:
    """Read what `save` wrote; as any pickle it may run code, so from sources that are trusted.

    ValueError where there is no such file, RuntimeError for what `save` did not write.
    """
    deprecated("load", "switch to `torch.export`")
    if builtins.isinstance(f, str | os.PathLike) and not os.path.exists(f):
        raise ValueError(f"The provided filename {f} does not exist")
    if not mindtorch.serialization._is_zipfile(f):
        raise damaged_zip(0)
    archive = mindtorch.load(f, map_location=map_location, weights_only=False)
    if not (builtins.isinstance(archive, dict) and "module" in archive):
        raise damaged_archive("locating file constants.pkl: file not found")
    if _extra_files is not None:
        for name in _extra_files:
            content = archive["files"].get(name, b"")
            _extra_files[name] = content.encode() if builtins.isinstance(content, str) else content
    return archive["module"]


def fork(func: Callable[..., T], *args: object, **kwargs: object) -> Future[T]:
    """A future of `func(*args)`, which is run at once."""
    future: Future[T] = Future()
    try:
        future.set_result(func(*args, **kwargs))
    except Exception as error:
        future.set_exception(error)
    return future


def wait(future: Future[T]) -> T:
    """What `fork`'s function gave, or its error."""
    return future.wait()


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Accepted without effect: nothing is compiled."""
    yield


def enable_onednn_fusion(enabled: bool) -> None:
    """Accepted without effect: nothing is compiled."""


def onednn_fusion_enabled() -> bool:
    """False."""
    return False


def set_fusion_strategy(strategy: object) -> list[tuple[str, int]]:
    """Accepted without effect; no strategy was there before."""
    return []


class strict_fusion:  # noqa: N801 - torch's name
    """A context without effect: nothing is fused."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


_get_trace_graph = refused("torch.jit._get_trace_graph", "mindtorch has no tracer of operators")


def export_opnames(m: object) -> list[str]:
    """No operator: nothing is compiled."""
    return []
