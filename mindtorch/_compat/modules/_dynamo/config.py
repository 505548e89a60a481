"""Settings of torch's compiler: kept as they are set, read by nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

cache_size_limit = recompile_limit = 8
suppress_errors = False
verbose = False
dynamic_shapes = True
automatic_dynamic_shapes = True
capture_scalar_outputs = False
capture_dynamic_output_shape_ops = False
inline_inbuilt_nn_modules = True
optimize_ddp = True
skip_fwd_side_effects_in_bwd_under_checkpoint = False
reorderable_logging_functions: set[Any] = set()
allow_unspec_int_on_nn_module = False
error_on_recompile = False
accumulated_cache_size_limit = 256


@contextlib.contextmanager
def patch(settings: dict[str, Any] | None = None, **more: Any) -> Iterator[None]:
    """Inside, or in a function that it decorates, settings are others."""
    changed = {**(settings or {}), **more}
    before = {name: globals().get(name) for name in changed}
    try:
        globals().update(changed)
        yield
    finally:
        globals().update(before)
