"""Owns functionalize: a function without in-place writes inside."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from .._autograd.grad_mode import LOCAL
from .._dispatch.functionalize import functionalize as _context
from ..nn.modules.batchnorm import _BatchNorm
from ..nn.modules.module import Module


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """`func` whose writes run as pure ops with a write back."""
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}."
            " Valid options are:\n     remove='mutations': all inplace and out= operators will be"
            " removed from the program, and replaced with their out-of-place equivalents.\n    "
            " remove='mutations_and_views': In addition to the above, all aliasing operators {view}"
            " will be replaced with their non-aliasing counterparts, {view}_copy.\n"
        )

    @wraps(func)
    def inside(*args: Any, **kwargs: Any) -> Any:
        mode: Any = LOCAL.dispatches[-1] if LOCAL.dispatches else None
        if hasattr(mode, "functionalized"):  # a trace has the operators instead of writes
            with mode.functionalized((args, kwargs), remove != "mutations"):
                return func(*args, **kwargs)
        with _context():
            return func(*args, **kwargs)

    return inside


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Let every batch norm in `root` use the statistics of its batch, and keep none; gives `root`.

    Running statistics are written in place, which functions over batches cannot be.
    """
    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
