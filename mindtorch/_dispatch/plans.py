"""Owns Plan and how one is made: devices checked, the row's rule asked, the backend's run taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .._autograd.grad_mode import below_autograd
from .._backends.common.view import view_plan
from .._backends.registry import registry
from .._compat import unsupported_dtypes
from .._tensor import device as _device
from .._tensor.device import device as Device
from .._tensor.dtype import FLOAT, dtype as Dtype
from .._tensor.geometry import Geometry
from .._tensor.tensor import Tensor
from ..ops.spec import Op
from . import bounds

LIMIT = 4096


class CallPlan:
    """What is known about a call once metadata is: how to run it and what comes out.

    `run(*args)` reads only tensors and Scalars from its arguments; everything else was fixed when
    the plan was made. `args` are the arguments in plan form with Geometries for tensors;
    `outs` the Geometries of the results.
    """

    __slots__ = ("args", "outs", "run")

    def __init__(self, run: Callable[..., Any], args: tuple[Any, ...], outs: tuple[Any, ...]):
        self.run = run
        self.args = args
        self.outs = outs


_tables: list[dict[Any, CallPlan]] = []


def table() -> dict[Any, CallPlan]:
    """A new dict of plans that `clear` will empty."""
    plans: dict[Any, CallPlan] = {}
    _tables.append(plans)
    return plans


def clear() -> None:
    """Forget all plans: the default dtype or a kernel changed."""
    for plans in _tables:
        plans.clear()


registry.on_change = clear


@contextmanager
def references() -> Iterator[None]:
    """What a device is held against: rows run in numpy alone, in half too where torch's cpu
    lacks it."""
    state = unsupported_dtypes.REFERENCES
    outer, state.active = state.active, True
    if state.native:
        state.native = False
        clear()
    try:
        yield
    finally:
        state.active = outer
        if state.passed and not outer:
            state.passed = False
            clear()  # plans that others would be refused


def put(plans: dict[Any, CallPlan], key: Any, plan: CallPlan) -> None:
    """Store a plan; a full table is emptied first."""
    if len(plans) >= LIMIT:
        plans.clear()
    plans[key] = plan


def geometries(args: Sequence[Any]) -> tuple[Any, ...]:
    """The arguments with each tensor replaced by its Geometry."""
    return tuple(_geometry(a) for a in args)


def _geometry(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value._geom
    if value.__class__ is tuple and any(isinstance(v, Tensor) for v in value):
        return tuple(_geometry(v) for v in value)
    return value


def flat_geometries(geoms: Sequence[Any]) -> list[Geometry]:
    """Every Geometry in the arguments, those in lists too."""
    flat = []
    for g in geoms:
        if g.__class__ is Geometry:
            flat.append(g)
        elif g.__class__ is tuple:
            flat.extend(v for v in g if v.__class__ is Geometry)
    return flat


def device_of(op: Op, geoms: Sequence[Any]) -> Device:
    """The device that runs the call; RuntimeError in torch's words for tensors on two."""
    flat = flat_geometries(geoms)
    if _crosses(op):
        return flat[0].device
    if not flat:
        devices = [a for a in geoms if a.__class__ is _device.device]
        return _device.resolve(devices[0] if devices else None)
    mixes = getattr(op.infer, "mixes_devices", False)
    device = flat[0].device
    for g in flat[1:]:
        if g.device is device:
            continue
        if mixes and not g.ndim and g.device.type == "cpu":
            continue
        if mixes and device.type == "cpu" and not flat[0].ndim:
            device = g.device
            continue
        if "meta" in (device.type, g.device.type):
            raise RuntimeError(
                f"Tensor on device {g.device} is not on the expected device {device}!"
            )
        _refuse_devices(op, geoms, mixes, device, g)
    return device


# The operator that torch's function has.
_METHODS = dict.fromkeys(("_batch_norm_functional", "_batch_norm_moving"), "native_batch_norm")


def _refuse_devices(
    op: Op, geoms: Sequence[Any], mixes: bool, device: Device, other: Geometry
) -> None:
    """RuntimeError of tensors on two devices. torch looks at shapes and dtypes first where it
    iterates over elements, at devices first elsewhere, and names the argument there.

    `geoms`: destinations may stand in front of the arguments.
    """
    args = tuple(geoms[-len(op.schema.args) :])
    if mixes:
        _look_at_dtype(op, device, args)
        infer(op, args)
        difference = f"found at least two devices, {device} and {other.device}!"
    else:
        names = (
            arg.name
            for arg, value in zip(op.schema.args, args, strict=False)
            if value is other or (value.__class__ is tuple and any(v is other for v in value))
        )
        name = next(names, "out")
        method, first, second = op.base_name, other.device, device
        if method == "linear":  # torch's is one of two others
            biased = args[2] is not None
            method, name = ("addmm", "mat1") if biased else ("matmul", "other")
            first = args[0 if biased else 1].device
            second = other.device if first == device else device
        backend = "NPU" if "npu" in (device.type, other.device.type) else "CPU"
        difference = (
            f"got {name} is on {first}, different from other tensors on {second} (when"
            f" checking argument in method wrapper_{backend}__{_METHODS.get(method, method)})"
        )
    raise RuntimeError(f"Expected all tensors to be on the same device, but {difference}")


def infer(op: Op, geoms: tuple[Any, ...]) -> tuple[Any, ...]:
    """The Geometries of the results, as a tuple."""
    if op.infer is None:
        raise RuntimeError(f"aten::{op.base_name} has no shape rule: give its row `infer`")
    outs = op.infer(*geoms)
    if outs.__class__ is Geometry:
        return (outs,)
    return tuple(outs) if isinstance(outs, tuple | list) else (outs,)


def functional(op: Op, args: tuple[Any, ...]) -> CallPlan:
    """The plan of a call that makes new results (or views)."""
    plan = _functional(op, args)
    run = plan.run = bounds.guard(op, plan.args, plan.run, functional)
    look = op.kernels.refuses(plan.args, plan.outs) if op.kernels.refuses else None
    if look is not None:

        def guarded(*args: Any) -> Any:
            look(*args)
            return run(*args)

        plan.run = guarded
    return plan


def _functional(op: Op, args: tuple[Any, ...]) -> CallPlan:
    op.bind()
    geoms = geometries(args)
    device = device_of(op, geoms)
    custom = registry.kernel(op.name, device.type)
    if custom is not None:
        fn, meta = custom
        outs = meta(*geoms) if meta is not None else infer(op, geoms) if op.infer else ()
        outs = (outs,) if outs.__class__ is Geometry else tuple(outs)
        return CallPlan(fn, geoms, outs)
    _look_at_dtype(op, device, geoms)
    outs = infer(op, geoms)
    if op.is_view:
        return CallPlan(view_plan(op, outs), geoms, outs)
    if _crosses(op) and not _casts_on_host(op, geoms[0], outs[0]):
        return CallPlan(_transfer(op, geoms, outs[0]), geoms, outs)
    return CallPlan(_backend_run(op, device, args, outs), geoms, outs)


def _look_at_dtype(op: Op, device: Device, geoms: tuple[Any, ...]) -> None:
    if device.type == "cpu":
        unsupported_dtypes.refuse_stored(op.name, op.infer, geoms)
    if op.dtypes.unsupported and device.type != "meta":
        unsupported_dtypes.refuse(op.dtypes.unsupported, op.infer, geoms, device.type)


def _crosses(op: Op) -> bool:
    return bool(getattr(op.infer, "crosses_devices", False))


def _backend_run(op: Op, device: Device, args: tuple[Any, ...], outs: tuple[Any, ...]) -> Any:
    backend = registry.backend(device)
    if op.lower is not None and not backend.has_kernel(op, args, outs) and device.type != "meta":
        return _by_the_rule(below_autograd(op.lower), backend, geometries(args), outs)
    return backend.functional(op, args, outs)


def _by_the_rule(
    body: Callable[..., Any], backend: Any, geoms: tuple[Any, ...], outs: tuple[Any, ...]
) -> Callable[..., Any]:
    """A body of calls, whose results get the strides of the row's rule where theirs may differ:
    where a tensor is not contiguous."""
    known = flat_geometries((*geoms, *outs))
    if all(g.contiguous for g in known) or any(o.__class__ is not Geometry for o in outs):
        return body

    def lay(value: Any, out: Geometry) -> Any:
        geom = value._geom if value.__class__ is Tensor else out
        if not _strides_differ(geom, out):
            return value
        copy = backend.allocate(out)
        backend.copy(copy, value)
        return copy

    def run(*args: Any) -> Any:
        results = body(*args)
        if results.__class__ is not tuple:
            return lay(results, outs[0])
        return tuple([lay(value, out) for value, out in zip(results, outs, strict=True)])

    return run


def _strides_differ(geom: Geometry, out: Geometry) -> bool:
    if geom.strides == out.strides or geom.shape != out.shape or geom.dtype is not out.dtype:
        return False
    rows = zip(out.shape, geom.strides, out.strides, strict=True)
    return bool(out.numel) and any(a != b for n, a, b in rows if n > 1)


_SMALL = 1 << 11  # elements from which a backend's copy may have a faster cast of halves


def _casts_on_host(op: Op, source: Geometry, out: Geometry) -> bool:
    here = op.base_name == "_to_copy" and out.device is source.device
    whole = source.dtype is not out.dtype and not (_is_half(source.dtype) or _is_half(out.dtype))
    return here and out.device.type == "cpu" and (whole or out.numel < _SMALL)


def _is_half(dtype: Dtype) -> bool:
    return dtype.category == FLOAT and dtype.itemsize == 2


def _mover(a: Device, b: Device) -> Any:
    """The backend that moves data between two devices: the one that is not the host."""
    return registry.backend(b if a.type == "cpu" else a)


def _transfer(op: Op, geoms: tuple[Any, ...], out: Geometry) -> Callable[..., Any]:
    source = 1 if op.base_name == "copy" else 0
    allocate = registry.backend(out.device).allocate
    copy = _mover(out.device, geoms[source].device).copy

    def run(*args: Any) -> Tensor:
        block = allocate(out)
        copy(block, args[source])
        return block

    return run


def into(op: Op, args: tuple[Any, ...], dests: tuple[Geometry, ...], inplace: bool) -> CallPlan:
    """The plan of a call that writes to tensors of the Geometries `dests`: `run(dests, *args)`.

    `inplace` says that the only destination is the first argument.
    """
    plan = _into(op, args, dests, inplace)
    run = plan.run = bounds.guard(op, plan.args, plan.run, functional, 1)
    look = op.kernels.refuses(plan.args, plan.outs) if op.kernels.refuses else None
    if look is not None:

        def guarded(dests: tuple[Tensor, ...], *args: Any) -> Any:
            look(*args)
            return run(dests, *args)

        plan.run = guarded
    return plan


def _into(op: Op, args: tuple[Any, ...], dests: tuple[Geometry, ...], inplace: bool) -> CallPlan:
    op.bind()
    geoms = geometries(args)
    if _crosses(op) and inplace:
        mover = _mover(geoms[0].device, geoms[1].device)
        outs = infer(op, geoms)
        return CallPlan(lambda dests, _, source, *__: mover.copy(dests[0], source), geoms, outs)
    device = device_of(op, (*dests, *geoms))
    custom = registry.kernel(op.name, device.type)
    if custom is not None:
        return CallPlan(_through_copy(custom[0]), geoms, dests)
    _look_at_dtype(op, device, geoms)
    outs = infer(op, geoms)
    backend = registry.backend(device)
    if op.lower is not None and not backend.has_kernel(op, args, outs) and device.type != "meta":
        return CallPlan(_through_copy(below_autograd(op.lower)), geoms, outs)
    return CallPlan(backend.into(op, args, outs, dests, inplace), geoms, outs)


def _through_copy(fn: Callable[..., Any]) -> Callable[..., Any]:
    def run(dests: tuple[Tensor, ...], *args: Any) -> None:
        result = fn(*args)
        for dest, value in zip(
            dests, result if isinstance(result, tuple) else (result,), strict=True
        ):
            registry.backend(dest.device).copy(dest, value)

    return run
