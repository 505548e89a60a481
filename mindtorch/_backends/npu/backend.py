"""The npu backend: rows' ACLNN calls as plans, launched in one C call each.

It computes nothing itself; `on_host` says when the host does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from aclnn_bindings import ScalarSpec, lib

from ..._tensor.device import device as Device
from ..._tensor.geometry import Geometry
from ..._tensor.tensor import Tensor
from ...ops.fields import Const
from ...ops.rules import NUMBERS, Dynamic, Pointwise, Results
from ...ops.schema import ArgKind
from ...ops.spec import Both, IsNumber, NoNumbers, Op
from . import memory, on_host, transfer, writeback
from .binding import Binder, LaunchBinding, not_implemented
from .dynamic import dynamic
from .preparation import cast, make_step
from .runner import Plans, making, sizes


class NpuBackend:
    """Runs rows on a device of the opened install; see `registry.DeviceBackend`."""

    def allocate(self, geom: Geometry) -> Tensor:
        return memory.allocate(geom)

    def functional(self, op: Op, args: Sequence[Any], outs: Results) -> Callable[..., Any]:
        device = _device(args, outs)
        geoms = tuple(out for out in outs if isinstance(out, Geometry))
        if len(geoms) < len(outs):
            return dynamic(op, args, [o for o in outs if isinstance(o, Dynamic)], device)
        if _is_nothing(geoms):
            return _allocated(geoms)
        if on_host.applies(op, args, geoms):
            return on_host.guarded(op, geoms, lambda: self._native(op, args, geoms))
        return self._native(op, args, geoms)

    def _native(self, op: Op, args: Sequence[Any], geoms: tuple[Geometry, ...]) -> Any:
        """The operator's call on the device."""
        device = _device(args, geoms)
        binder = Binder(op, args, geoms, device)
        binding = binder.bind()
        if binding.call.inplace or binder.gives_lists(binding.call):
            return self._copy_then_write(op, args, geoms)
        if binding.instead:
            return self._then_cast(op, args, geoms, binding.instead)
        return launcher(op, args, geoms, binding)

    def _then_cast(
        self, op: Op, args: Sequence[Any], outs: tuple[Geometry, ...], instead: Any
    ) -> Callable[..., Any]:
        """Results in the dtypes that the operator gives, then cast on the device."""
        dtypes_in = tuple(
            out.fresh(dtype=instead[k]) if k in instead else out for k, out in enumerate(outs)
        )
        run = self.functional(op, args, dtypes_in)
        casts = {k: cast(dtypes_in[k], outs[k]) for k in instead}

        def inside(*values: Any) -> Any:
            outputs = run(*values)
            if len(outs) == 1:
                return casts[0](outputs)
            return tuple(casts[k](v) if k in casts else v for k, v in enumerate(outputs))

        return inside

    def has_kernel(self, op: Op, args: Sequence[Any], outs: Results) -> bool:
        geoms = tuple(out for out in outs if isinstance(out, Geometry))
        return Binder(op, args, geoms, _device(args, outs)).applies()

    def into(
        self,
        op: Op,
        args: Sequence[Any],
        outs: tuple[Geometry, ...],
        dests: tuple[Geometry, ...],
        inplace: bool,
    ) -> Callable[..., None]:
        if _is_nothing(dests):
            return lambda *_: None
        if not _writable(outs, dests):
            return self._through_copy(op, args, outs)
        if on_host.applies(op, args, outs):
            make = partial(self._native_into, op, args, outs, dests, inplace)
            return on_host.guarded_into(op, outs, make)
        return self._native_into(op, args, outs, dests, inplace)

    def _native_into(
        self,
        op: Op,
        args: Sequence[Any],
        outs: tuple[Geometry, ...],
        dests: tuple[Geometry, ...],
        inplace: bool,
    ) -> Callable[..., None]:
        binding = Binder(op, args, outs, dests[0].device).bind(dests, inplace)
        if binding.instead:
            return self._through_copy(op, args, outs)
        direct = launcher(op, args, outs, binding, dests, inplace)
        if inplace and (binding.call.inplace or isinstance(op.infer, Pointwise)):
            return direct
        if binding.call.inplace:
            return _self_first(direct)
        return _unless_overlapping(direct, lambda: self._through_copy(op, args, outs))

    def _copy_then_write(
        self, op: Op, args: Sequence[Any], outs: tuple[Geometry, ...]
    ) -> Callable[..., Any]:
        write = self.into(op, args, outs, outs, False)

        def run(*values: Any) -> Any:
            targets = tuple([memory.allocate(geom) for geom in outs])
            write(targets, *values)
            return targets if len(targets) > 1 else targets[0]

        return run

    def _through_copy(
        self, op: Op, args: Sequence[Any], outs: tuple[Geometry, ...]
    ) -> Callable[..., None]:
        functional = self.functional(op, args, outs)

        def run(dests: tuple[Tensor, ...], *values: Any) -> None:
            result = functional(*values)
            for dest, value in zip(
                dests, result if isinstance(result, tuple) else (result,), strict=True
            ):
                transfer.copy(dest, value)

        return run

    def copy(self, dest: Tensor, source: Tensor) -> None:
        transfer.copy(dest, source)

    def write_back(self, op: Op, dest: Tensor, source: Tensor) -> None:
        writeback.write_back(op, dest, source)


def _device(args: Sequence[Any], outs: Results) -> Device:
    if outs and outs[0].__class__ is Geometry:
        return outs[0].device
    return next(a._geom.device for a in args if isinstance(a, Tensor))


def _is_nothing(geoms: Sequence[Geometry]) -> bool:
    """Whether results have no elements: some operators refuse what leads to none."""
    return bool(geoms) and not any(g.numel for g in geoms)


def _allocated(geoms: tuple[Geometry, ...]) -> Callable[..., Any]:
    def run(*_: Any) -> Any:
        results = tuple([memory.allocate(g) for g in geoms])
        return results if len(results) > 1 else results[0]

    return run


def _writable(outs: Sequence[Any], dests: Sequence[Geometry]) -> bool:
    """Whether a launch may write to `dests` itself: the results' shapes and dtypes."""
    return len(outs) == len(dests) and all(
        o.__class__ is Geometry and o.dtype is d.dtype and o.shape == d.shape
        for o, d in zip(outs, dests, strict=True)
    )


def launcher(
    op: Op, args: Sequence[Any], outs: Sequence[Geometry], binding: LaunchBinding,
    dests: Sequence[Geometry] | None = None, inplace: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """`run(*args)`, or `run(dests, *args)`, of one bound call."""
    device = (dests or outs)[0].device if (dests or outs) else _device(args, outs)
    numbers = _numbers(op, args)
    steps = {
        s.position: make_step(s, getattr(args[s.position], "_geom", None)) for s in binding.steps
    }
    count = len(op.schema.args)
    order = binding.results if dests is None else []
    make = making(
        tuple(binding.addresses), count, tuple(numbers), tuple(sorted(steps)), len(order),
        dests is not None,
    )  # fmt: skip
    geoms = tuple(outs[k] for k in order)
    plans = None
    plan = _plan(binding)
    if numbers:
        again = _other_numbers(op, binding, plan, numbers)
        plans = Plans(
            again or (lambda values: _plan(Binder(op, values, outs, device).bind(dests, inplace)))
        )
        plans.by_key[_key([args[i] for i in numbers])] = plan
    run = make(plans, plan, steps, device.index, geoms, sizes(geoms), lib.mt_session())
    if dests is None and len(order) < len(outs):
        return _completed(op, run, order, outs)
    if order != sorted(order):
        return _reordered(run, order)
    return run


def _numbers(op: Op, args: Sequence[Any]) -> list[int]:
    """Positions of numbers that the plan's key knows by class only."""
    places = op.cache.get("numbers")
    if places is None:
        kinds = (ArgKind.SCALAR, ArgKind.UNION)
        places = [i for i, arg in enumerate(op.schema.args) if arg.kind in kinds]
        op.cache["numbers"] = places
    declared = op.schema.args
    return [i for i in places if args[i].__class__ in NUMBERS and not declared[i].is_left(args[i])]


# Conditions of calls that no number's value changes.
_UNREAD = (IsNumber, NoNumbers, Both, type(None))


def _other_numbers(
    op: Op, binding: LaunchBinding, plan: Any, numbers: Sequence[int]
) -> Callable[[Sequence[Any]], Any] | None:
    """The maker of the same plan for other values of its numbers, where those decide nothing else:
    each is an aclScalar of the call, and no other argument nor the choice of the call reads them.
    """
    names = binding.call.args
    plain = all(isinstance(a, str | Const) for a in names)
    if not plain or any(not isinstance(c.when, _UNREAD) for c in op.kernels.aclnn):
        return None
    positions = {op.schema.args[i].name: i for i in numbers}
    places = {at: positions[a] for at, a in enumerate(names) if a in positions}
    if any(binding.arguments[at].__class__ is not ScalarSpec for at in places):
        return None
    return lambda values: plan.with_scalars({at: ScalarSpec(values[i]) for at, i in places.items()})


def _key(values: list[Any]) -> Any:
    keys = [v or repr(v) for v in values]
    return keys[0] if len(keys) == 1 else tuple(keys)


def _plan(binding: LaunchBinding) -> Any:
    return binding.bound.plan(*binding.arguments, allocate=binding.allocate)


def _reordered(run: Callable[..., Any], order: list[int]) -> Callable[..., Any]:
    """Results in the schema's order where the header has another."""
    places = [order.index(k) for k in range(len(order))]
    return lambda *args: tuple([outputs[p] for outputs in (run(*args),) for p in places])


def _completed(
    op: Op, run: Callable[..., Any], order: list[int], outs: Sequence[Geometry]
) -> Callable[..., Any]:
    """Empty tensors for the results that the call was not asked for."""
    left = [k for k in range(len(outs)) if k not in order]
    if any(outs[k].numel for k in left):
        raise not_implemented(op, f"its row's call gives no result {left[0]}")

    def complete(*args: Any) -> tuple[Tensor, ...]:
        outputs = run(*args)
        by_result = dict(zip(order, outputs if len(order) > 1 else (outputs,), strict=True))
        return tuple(
            [by_result[k] if k in by_result else memory.allocate(g) for k, g in enumerate(outs)]
        )

    return complete


def _self_first(direct: Callable[..., None]) -> Callable[..., None]:
    """For calls that update their first tensor: it must hold `self` before."""

    def run(dests: tuple[Tensor, ...], *values: Any) -> None:
        dest, source = dests[0], values[0]
        if dest._storage is not source._storage or dest._geom is not source._geom:
            transfer.copy(dest, source)
        direct(dests, *values)

    return run


def _unless_overlapping(
    direct: Callable[..., None], detour: Callable[[], Callable[..., None]]
) -> Callable[..., None]:
    """Write directly, but through other memory where an input shares a destination's."""
    checks: list[Callable[..., None]] = []

    def run(dests: tuple[Tensor, ...], *values: Any) -> None:
        if _shares(dests, values):
            if not checks:
                checks.append(detour())
            checks[0](dests, *values)
        else:
            direct(dests, *values)

    return run


def _shares(dests: tuple[Tensor, ...], values: Sequence[Any]) -> bool:
    storages = [dest._storage for dest in dests]
    tensors = [v for value in values for v in (value if value.__class__ is tuple else (value,))]
    return any(getattr(v, "_storage", None) is s for v in tensors for s in storages)


backend = NpuBackend()
