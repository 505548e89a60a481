"""Owns custom ops of users: rows declared at run time, and kernels per device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._backends.registry import registry
from ._functional.publish import publish
from .ops.spec import OPS, Op, op


def define(schema: str, **fields: Any) -> Op:
    """Declare an op as a row does (docs/adding_an_op.md) and publish it; DuplicateOpError.

    `infer` is its shape rule, `grad` its derivative; kernels come as `cpu=`, `aclnn=`, `lower=`
    or through `register_kernel`.
    """
    row = op(schema, **fields)
    publish(row)
    return row


def register_kernel(
    name: str, device: str, fn: Callable[..., Any] | None = None, *, meta: Any = None
) -> Any:
    """Let `fn(*tensors)` run op `name` on a device type; a decorator without `fn`."""
    if name not in OPS:
        raise RuntimeError(f"register_kernel: no op named {name!r}; declare it with define() first")
    if fn is None:
        return lambda kernel: register_kernel(name, device, kernel, meta=meta) or kernel
    registry.register(name, device, fn, meta=meta)
    return None
