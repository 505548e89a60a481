"""Owns who runs an op on a device: the backends, and kernels that users register."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from .._tensor.device import device as Device
from .._tensor.geometry import Geometry
from .._tensor.tensor import Tensor
from ..ops.rules import Results
from ..ops.spec import Op


class MissingKernelError(NotImplementedError):
    """An op has no kernel on a device; the message names both, and where it has one."""


class DeviceBackend(Protocol):
    """What a device package provides.

    `functional(op, args, outs)` gives `run(*args)`, which makes the results of Geometries `outs`;
    `into(op, args, outs, dests)` gives `run(dests, *args)`, which writes what the functional call
    would give into existing tensors of Geometries `dests` (any strides; dtype cast where it
    differs); `inplace` says that the only destination is the first argument. Both are made once
    per metadata: everything but tensors and Scalars is fixed.
    """

    def functional(self, op: Op, args: Sequence[Any], outs: Results) -> Callable[..., Any]: ...

    def into(
        self,
        op: Op,
        args: Sequence[Any],
        outs: Results,
        dests: Sequence[Geometry],
        inplace: bool,
    ) -> Callable[..., None]: ...

    def has_kernel(self, op: Op, args: Sequence[Any], outs: Results) -> bool:
        """Whether the row names a kernel for these arguments here; if not, `lower` is used."""

    def allocate(self, geom: Geometry) -> Tensor:
        """An uninitialised tensor with this Geometry."""

    def copy(self, dest: Tensor, source: Tensor) -> None:
        """Write `source` to `dest`: broadcast, cast, and cross devices as needed."""

    def write_back(self, op: Op, dest: Tensor, source: Tensor) -> None:
        """Functionalize's write of a result to the tensor that an op mutates."""


_MODULES = {"cpu": ".cpu", "meta": ".meta", "npu": ".npu"}


class Registry:
    """Backends by device type, and (op, device) -> (kernel, meta)."""

    def __init__(self) -> None:
        self._backends: dict[str, Any] = {}
        self._kernels: dict[tuple[str, str], tuple[Callable[..., Any], Any]] = {}
        self.on_change: Callable[[], None] = lambda: None

    def register(
        self, op: str, device: str, fn: Callable[..., Any], meta: Callable[..., Any] | None = None
    ) -> None:
        """Let `fn(*args)` (tensors in, tensors out) run `op` on `device`.

        `meta(*args)` gives the result's Geometry from arguments with Geometries for tensors;
        without it the row's own rule does.
        """
        self._kernels[op, Device(device).type] = (fn, meta)
        self.on_change()

    def unregister(self, op: str, device: str) -> None:
        """Undo `register`; KeyError when there is nothing to undo."""
        del self._kernels[op, Device(device).type]
        self.on_change()

    def kernel(self, op: str, device: str) -> tuple[Callable[..., Any], Any] | None:
        """The registered `(kernel, meta)`, or None."""
        return self._kernels.get((op, device))

    def devices(self, op: Op) -> list[str]:
        """Device types with a kernel for the row `op`, its own or a registered one."""
        kinds = {d for name, d in self._kernels if name == op.name}
        kinds |= {"cpu"} if op.kernels.cpu is not None else set()
        kinds |= {"npu"} if op.kernels.aclnn else set()
        kinds |= {"cpu", "npu"} if op.lower is not None else set()
        kinds |= {"meta"} if op.infer is not None else set()
        return sorted(kinds)

    def missing(self, op: Op, device: str) -> str:
        """What to say where `op` has no kernel on `device`."""
        name = {"npu": "NPU", "cpu": "CPU", "meta": "Meta"}[device]
        there = ", ".join(self.devices(op)) or "no device"
        return (
            f"aten::{op.base_name} is not implemented for {name}; it has kernels for: {there}. Add"
            f" one with registry.register({op.name!r}, {device!r}, fn)"
        )

    def backend(self, device: Device) -> DeviceBackend:
        """The backend of a device type; imported when first asked for."""
        backend = self._backends.get(device.type)
        if backend is None:
            module = importlib.import_module(_MODULES[device.type], __package__)
            backend = self._backends[device.type] = module.backend
        return backend


registry = Registry()
