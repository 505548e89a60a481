"""Owns torch.compiler's names: eager code is what runs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import ContextDecorator
from typing import Any, NoReturn

_warned: set[str] = set()
_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
# Backends of the program's own, by name.
REGISTERED: dict[str, Callable[..., Any]] = {}
# torch's own backends, whatever runs them.
_BACKENDS = frozenset((
    "aot_eager", "aot_eager_decomp_partition", "aot_eager_decomp_partition_with_mode",
    "aot_eager_default_partitioner", "aot_ts", "cudagraphs", "eager", "eager_debug",
    "eager_noexcept", "inductor", "invoke_subgraph", "npu", "npugraphs", "openxla",
    "openxla_eval", "pre_dispatch_eager", "ts", "tvm",
))  # fmt: skip


def compile(
    model: Callable[..., Any] | None = None, *, fullgraph: bool = False,
    dynamic: bool | None = None, backend: object = None, mode: str | None = None,
    options: Mapping[str, object] | None = None, name: str | None = None, disable: bool = False,
    recompile_limit: int | None = None, isolate_recompiles: bool = False,
    shapes_spec: object = None,
) -> Callable[..., Any]:  # fmt: skip
    """What runs `model` (torch.compile): a module in a module, else a function.

    A `backend` that is a function gets each graph with its example inputs, and gives what runs;
    the others run eagerly, and one warning in a process says so, but not where it is eager. None
    is what `get_default_backend()` gives.
    torch._dynamo.exc.Unsupported where `fullgraph` and a call is more than one graph.
    """
    if model is None:
        return lambda target: compile(
            target, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode,
            options=options, disable=disable, recompile_limit=recompile_limit,
        )  # fmt: skip
    backend = get_default_backend() if backend is None else backend
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    if backend == "inductor" and mode is not None and mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    if disable:
        return model
    backend = REGISTERED.get(backend, backend) if isinstance(backend, str) else backend
    from mindtorch.nn.modules.module import Module

    from .capture import CapturedCall, EagerCall
    from .optimized import OptimizedModule

    if callable(backend):
        call: EagerCall | CapturedCall = CapturedCall(
            model, backend, fullgraph, dynamic, recompile_limit
        )
        return OptimizedModule(model, call) if isinstance(model, Module) else call.function()
    if isinstance(backend, str) and backend not in _BACKENDS:
        from .._dynamo.exc import InvalidBackend

        raise InvalidBackend(backend)
    if backend not in ("eager", "aot_eager") and not _warned:
        _warned.add("eager")
        warnings.warn(
            "torch.compile: mindtorch has no compiler, what is compiled runs eagerly", stacklevel=2
        )
    call = EagerCall(model, fullgraph, backend)
    return OptimizedModule(model, call) if isinstance(model, Module) else call.function()


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """`fn` as no part of any graph; a decorator without one."""
    if fn is None:
        return lambda f: disable(f, recursive, reason=reason)
    from mindtorch.nn.modules.module import Module

    from .capture import outside_graphs
    from .optimized import OptimizedModule

    call = outside_graphs(fn, reason)
    return OptimizedModule(fn, call) if isinstance(fn, Module) else call


def allow_in_graph(fn: Any) -> Any:
    """`fn`, or each of a list, as a function whose calls are one node each."""
    if isinstance(fn, list | tuple):
        return [allow_in_graph(f) for f in fn]
    if not callable(fn):
        raise AssertionError("allow_in_graph expects a callable")
    from .capture import one_node

    return one_node(fn)


def _unchanged(fn: Any) -> Any:
    """`fn` unchanged: what it calls is in the graph."""
    return fn


assume_constant_result = substitute_in_graph = nested_compile_region = _unchanged


def is_compiling() -> bool:
    """Whether a compiled function, or an export, is at work."""
    from .capture import CURRENT

    return CURRENT.compiling > 0


is_dynamo_compiling = is_compiling


def is_exporting() -> bool:
    """Whether an export is at work."""
    from .capture import CURRENT

    return CURRENT.exporting


def reset() -> None:
    """Forget all graphs."""
    from .capture import CALLS

    for call in list(CALLS):
        call.entries.clear()
        call.sizes.clear()
        call.guards.clear()


def cudagraph_mark_step_begin() -> None:
    """Nothing to mark."""


class set_stance(ContextDecorator):  # noqa: N801 - torch's name
    """A statement, a context or a decorator: with "force_eager" nothing is compiled; the others
    are accepted."""

    def __init__(
        self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False,
        force_backend: object = None,
    ) -> None:  # fmt: skip
        if force_backend is not None and stance != "default":
            raise RuntimeError("non-default stance cannot have force_backend set")
        from .capture import CURRENT

        self._before, self._stance = CURRENT.stance, stance
        CURRENT.stance = stance

    def __enter__(self) -> None:
        from .capture import CURRENT

        CURRENT.stance = self._stance

    def __exit__(self, *_: object) -> None:
        from .capture import CURRENT

        CURRENT.stance = self._before


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Accepted: nothing is guarded."""
    return False


def skip_guard_on_all_nn_modules_unsafe(guards: Any) -> list[bool]:
    """Nothing is guarded."""
    return [False for _ in guards]


def is_inference_compiling() -> bool:
    """False."""
    return False


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """torch's names with the program's own; "eager" is one for debugging."""
    if "debug" in (exclude_tags or ()):
        return sorted({"cudagraphs", "inductor", "openxla", "tvm", *REGISTERED})
    return sorted({*_BACKENDS, *REGISTERED} - {"npu", "npugraphs"})  # which torch_npu adds


_DEFAULT: list[Any] = ["inductor"]


def get_default_backend() -> Any:
    """What `torch.compile` takes where no backend is named; "inductor" runs eagerly here."""
    return _DEFAULT[0]


def set_default_backend(backend: str | Callable[..., Any] | None) -> None:
    """Replace it; None is "inductor" again."""
    _DEFAULT[0] = "inductor" if backend is None else backend


def wrap_numpy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of arrays as one of tensors."""
    import functools

    import numpy as np

    from mindtorch._functional.publish import function
    from mindtorch._tensor.tensor import Tensor
    from mindtorch.utils._pytree import tree_map_only

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree_map_only(Tensor, lambda x: x.numpy(), (args, kwargs))
        return tree_map_only(np.ndarray, function("from_numpy"), fn(*args, **kwargs))

    return wrapped


def save_cache_artifacts() -> None:
    """None: nothing was compiled."""


def load_cache_artifacts(serialized_artifacts: bytes) -> None:
    """None: nothing is loaded."""


def load_compiled_function(file: object, **_: object) -> NoReturn:
    """Refused: nothing is compiled."""
    raise NotImplementedError("torch.compiler.load_compiled_function: mindtorch has no compiler")


def keep_tensor_guards_unsafe(
    guard_entries: Iterable[object], keep_parameters: bool = False
) -> list[bool]:
    """Nothing is guarded."""
    return [False for _ in guard_entries]


keep_portable_guards_unsafe = skip_all_guards_unsafe = skip_guard_on_all_nn_modules_unsafe
skip_guard_on_globals_unsafe = skip_guard_on_inbuilt_nn_modules_unsafe = skip_all_guards_unsafe
