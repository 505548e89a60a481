"""Owns custom ops of users: rows declared at run time, kernels per device, and torch.library."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from .._autograd.grad_mode import is_grad_enabled, set_grad_enabled
from .._backends.registry import registry
from .._dispatch.new_sizes import FakeImplCtx
from .._functional.publish import publish
from .._tensor.dtype import dtype as Dtype
from ..ops.namespaces import OpOverload, namespace
from ..ops.spec import OPS, Op, op
from .custom import (
    FAKE_CONTEXT,
    CustomOpDef,
    Library,
    _Scoped,
    custom_op,
    find,
    give,
    infer_schema,
)
from .registration import opcheck

__all__ = [
    "CustomOpDef", "Library", "custom_op", "define", "fallthrough_kernel", "get_ctx", "get_kernel",
    "impl", "impl_abstract", "infer_schema", "opcheck", "register_autocast", "register_autograd",
    "register_fake", "register_kernel", "register_torch_dispatch", "register_vmap", "triton_op",
    "wrap_triton",
]  # fmt: skip


def define(
    schema: str,
    text: str | None = None,
    /,
    *,
    lib: Library | None = None,
    tags: object = (),
    **fields: Any,
) -> Op | None:
    """Declare an op: `define("ns::name", "(Tensor x) -> Tensor")` as torch.library does.

    With one argument, a schema with its name, a row (docs/adding_an_op.md): `infer` is its shape
    rule, `grad` its derivative; kernels come as `cpu=`, `aclnn=`, `lower=` or through
    `register_kernel`. DuplicateOpError where the row is there, TypeError for an unknown field, and
    for any field beside a name with a namespace.
    """
    if text is not None or "::" in schema.partition("(")[0]:
        if fields:
            name = schema.partition("(")[0]
            raise TypeError(
                f"define({name!r}): unexpected {', '.join(sorted(fields))}; an op with a namespace "
                "takes lib and tags only: add kernels with torch.library.impl"
            )
        name, arguments = (schema, text) if text is not None else _divided(schema)
        space, _, rest = name.partition("::")
        if not rest:
            raise ValueError(
                f'Expected `qualname` to be of the form "namespace::name", but got {name}. The'
                " qualname passed to the torch.library APIs must consist of a namespace and a name,"
                " e.g. aten::sin"
            )
        if not re.fullmatch(r"\(.*\) -> .*", arguments):
            raise ValueError(
                "define(qualname, schema, ...): expected schema to look like e.g."
                f' "(Tensor x) -> Tensor" but got "{arguments}"'
            )
        Library(space, "FRAGMENT").define(rest + arguments, tags=tags)
        return None
    row = op(schema, **fields)
    publish(row)
    return row


def _divided(schema: str) -> tuple[str, str]:
    """The name of an operator and what follows it."""
    name, bracket, rest = schema.partition("(")
    return name, bracket + rest


def register_kernel(
    name: Any,
    device: Any,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    meta: Callable[..., Any] | None = None,
    lib: Library | None = None,
    func: Callable[..., Any] | None = None,
) -> Any:
    """Let `fn(*tensors)` run an op on device types; a decorator without `fn`."""
    fn = fn or func
    if not isinstance(name, str) or "::" in name:
        return find(name, "register_kernel").register_kernel(device, fn)
    if name not in OPS:
        raise RuntimeError(f"register_kernel: no op named {name!r}; declare it with define() first")
    if fn is None:
        return lambda kernel: register_kernel(name, device, kernel, meta=meta) or kernel
    registry.register(name, device, fn, meta=meta)
    return None


def impl(
    qualname: str | OpOverload | CustomOpDef | Library,
    types: str | Sequence[str],
    func: Callable[..., Any] | str | None = None,
    *,
    lib: Library | None = None,
) -> Any:
    """Register a kernel of an op for device types or dispatch keys; a decorator without `func`.

    The older form `impl(library, name, dispatch_key="")` is one too.
    """
    if isinstance(qualname, Library):
        library, name, key = qualname, types, func if isinstance(func, str) else ""

        def put(kernel: Callable[..., object]) -> Callable[..., object]:
            library.impl(name, kernel, key)
            return kernel

        return put
    if func is None:
        return lambda kernel: impl(qualname, types, kernel, lib=lib) or kernel
    if not callable(func):
        raise TypeError(f"Input function is required to be a callable but found type {type(func)}")
    give(qualname, types, func)
    return None


def register_fake(
    op: str | OpOverload | CustomOpDef,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
    _stacklevel: int = 1,
    allow_override: bool = False,
) -> Any:
    """What an op does on meta tensors; a decorator without `func`."""
    return find(op, "register_fake").register_fake(func)


def impl_abstract(
    qualname: str | OpOverload | CustomOpDef,
    func: Callable[..., Any] | None = None,
    *,
    lib: Library | None = None,
    _stacklevel: int = 1,
) -> Any:
    """The older name of `register_fake`."""
    return register_fake(qualname, func, lib=lib, _stacklevel=_stacklevel)


def register_autograd(
    op: str | OpOverload | CustomOpDef,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
    lib: Library | None = None,
) -> None:
    """An op's derivative: `backward(ctx, *grads)`, and what it needs to keep."""
    find(op, "register_autograd").register_autograd(backward, setup_context=setup_context)


def register_vmap(
    op: str | OpOverload | CustomOpDef,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
) -> Any:
    """What an op does under vmap; without it, vmap runs the op once for each element."""
    return find(op, "register_vmap").register_vmap(func)


def register_torch_dispatch(
    op: str | OpOverload | CustomOpDef,
    torch_dispatch_class: Any,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
) -> Any:
    """What a class of dispatch modes makes of an op: `func(mode, op, types, args, kwargs)`."""

    def put(rule: Callable[..., Any]) -> Callable[..., Any]:
        find(op, "register_torch_dispatch").rules_of_modes[torch_dispatch_class] = rule
        return rule

    return put if func is None else put(func)


def register_autocast(
    op: str | OpOverload | CustomOpDef,
    device_type: str,
    cast_inputs: Dtype,
    /,
    *,
    lib: Library | None = None,
) -> None:
    """Cast the floating inputs of an op where autocast is on for a device type."""
    find(op, "register_autocast").register_autocast(device_type, cast_inputs)


def fallthrough_kernel(*_: object, **__: object) -> NoReturn:
    """The kernel of a dispatch key that hands calls on; it isn't called itself."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


_scoped_library = _Scoped


class _SafeKernelFunction:
    """What runs an operator for one dispatch key; `call_boxed` calls it."""

    def __init__(self, overload: OpOverload, key: str) -> None:
        self._overload, self._key = overload, key

    def call_boxed(self, dispatch_keys: object, /, *args: Any, **kwargs: Any) -> Any:
        """The operator's result; gradients are recorded by keys of Autograd alone.

        TypeError without a DispatchKeySet before the operator's arguments.
        """
        if type(dispatch_keys).__name__ != "DispatchKeySet":
            raise TypeError(
                "call_boxed(): incompatible function arguments. The following argument types are "
                "supported:\n    1. (self: torch._C._SafeKernelFunction, arg0: c10::DispatchKeySet,"
                " *args, **kwargs) -> object\n"
            )
        with set_grad_enabled(self._key.startswith("Autograd") and is_grad_enabled()):
            return self._overload(*args, **kwargs)


def get_kernel(op: str | OpOverload, dispatch_key: Any) -> _SafeKernelFunction:
    """The kernel of an operator, named `aten::add.Tensor` or given, for a dispatch key.

    ValueError for other classes and for names of no key, RuntimeError for what is no operator and
    for keys that stand for several.
    """
    if not isinstance(op, str | OpOverload):
        raise ValueError(f"get_kernel({op}): got unexpected type for op: {type(op)}")
    if isinstance(dispatch_key, str):
        keys = importlib.import_module("mindtorch._C").DispatchKey.__members__
        if dispatch_key not in keys:
            raise ValueError(f"Invalid dispatch key: {dispatch_key}")
        dispatch_key = keys[dispatch_key]
    if dispatch_key.name.startswith("Composite"):
        raise RuntimeError("Alias keys do not have runtime kernel registrations.")
    if isinstance(op, str):
        space, _, name = op.partition("::")
        name, _, overload = name.partition(".")
        packet = getattr(namespace(space), name, None) if name else None
        if packet is None or (overload or "default") not in packet.overloads():
            raise RuntimeError(f"operator {op} does not exist")
        operator = getattr(packet, overload or "default")
        return _SafeKernelFunction(operator, dispatch_key.name)
    return _SafeKernelFunction(op, dispatch_key.name)


def get_ctx() -> FakeImplCtx | None:
    """The context of the fake function that runs; None outside of one."""
    return FAKE_CONTEXT.get()


def triton_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    schema: str | None = None,
) -> Any:
    """custom_op whose function runs on meta too: triton's kernels are Python to this library."""

    def make(function: Callable[..., Any]) -> CustomOpDef:
        definition: CustomOpDef = custom_op(
            name, function, mutates_args=mutates_args, schema=schema
        )
        definition.register_fake(function)
        return definition

    return make if fn is None else make(fn)


def wrap_triton(triton_kernel: Any) -> Any:
    """The kernel itself."""
    return triton_kernel
