"""Owns torch.jit's names for code that mentions them: nothing is compiled here."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar
from typing import Final as Final

from mindtorch._compat.refusals import refused

T = TypeVar("T")


def is_scripting() -> bool:
    """False: code always runs as Python."""
    return False


def is_tracing() -> bool:
    """False: code always runs as Python."""
    return False


def _same(value: Any = None, *_: object, **__: object) -> Any:
    """Gives its argument; called with settings only, gives a decorator that does so."""
    return value if callable(value) else lambda wrapped: wrapped


def _deprecated(name: str) -> None:
    warnings.warn(
        f"`torch.jit.{name}` is deprecated. Please switch to `torch.compile` or `torch.export`.",
        DeprecationWarning,
        stacklevel=3,
    )


def script(obj: T, *_: object, **__: object) -> T:
    """`obj`, which runs eagerly; deprecated in torch too."""
    _deprecated("script")
    return obj


ignore = unused = export = script_if_tracing = _script_if_tracing = interface = _same


script_method = _same


def _overload_method(func: T) -> T:
    """`func`: a signature for the compiler that is not here."""
    return func


_overload = _overload_method


def annotate(the_type: Any, the_value: T) -> T:
    """`the_value`."""
    return the_value


def isinstance(obj: object, target_type: Any) -> bool:
    """Python's isinstance."""
    import builtins

    return builtins.isinstance(obj, target_type)


def trace(func: T, example_inputs: Any = None, *_: object, **__: object) -> T:
    """`func` itself: it runs eagerly, each branch as its inputs choose. Deprecated in torch too."""
    _deprecated("trace")
    if hasattr(func, "forward"):
        _deprecated("trace_method")
    return func


class ScriptModule:
    """Stands for a compiled module: nothing is one."""


class ScriptFunction:
    """Stands for a compiled function: nothing is one."""


def save(*_: object, **__: object) -> None:
    """Refused: there is nothing compiled to save."""
    raise NotImplementedError("torch.jit.save: mindtorch has no compiled modules")


class Attribute:
    """A value with the type that a compiler would see."""

    def __init__(self, value: Any, type: Any):
        self.value, self.type = value, type


class CompilationUnit:
    """Stands for compiled source: making one is refused."""

    def __init__(self, lang: Any = None, **_: object):
        raise NotImplementedError("torch.jit.CompilationUnit: mindtorch compiles nothing")


class RecursiveScriptModule(ScriptModule):
    """Stands for a compiled module: nothing is one."""


TopLevelTracedModule = TracedModule = RecursiveScriptModule


def freeze(mod: T, *_: object, **__: object) -> T:
    """The module itself."""
    return mod


optimize_for_inference = freeze


def load(*_: object, **__: object) -> NoReturn:
    """Refused: compiled modules need torch's interpreter."""
    raise NotImplementedError("torch.jit.load: mindtorch has no compiled modules")


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`func(*args)` run at once; `wait` gives it."""
    return func(*args, **kwargs)


def wait(future: Any) -> Any:
    """What `fork` gave."""
    return future


class TracerWarning(Warning):
    """What a tracer would warn of; filters name it."""


class TracingCheckError(Exception):
    """What a tracer would raise; handlers name it."""


class Error(RuntimeError):
    """What compiled code would raise; handlers name it."""


def trace_module(mod: T, inputs: object = None, *_: object, **__: object) -> T:
    """`mod` itself: it runs eagerly. Deprecated in torch too."""
    _deprecated("trace_method")
    return mod


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
