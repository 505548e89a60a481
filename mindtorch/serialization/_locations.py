"""Owns where storages of a file go: tags of devices, packages that restore them, map_location."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from .._tensor import dtype as dt
from .._tensor.device import CPU, META, STANDING_IN, device as Device, resolve
from .._tensor.geometry import geometry
from .._tensor.storage import MetaMemory, Storage
from .._tensor.tensor import wrap
from .._tensor.typed_storage import TypedStorage
from .._tensor.untyped_storage import UntypedStorage
from ..ops.spec import aten

Face: TypeAlias = UntypedStorage | TypedStorage
Place: TypeAlias = (
    Device | str | dict[str, str] | Callable[[UntypedStorage, str], Face | None] | None
)
Tagger: TypeAlias = Callable[[Face], str | None]
Restorer: TypeAlias = Callable[[UntypedStorage, str], Face | None]

_PACKAGES: list[tuple[int, Tagger, Restorer]] = []


def register_package(priority: int, tagger: Tagger, deserializer: Restorer) -> None:
    """Tag and restore storages of a device; lower priorities are asked first."""
    _PACKAGES.append((priority, tagger, deserializer))
    _PACKAGES.sort(key=lambda package: package[0])


def location_tag(storage: Face) -> str:
    """The name of a storage's device in files; RuntimeError where no package knows it."""
    for _, tagger, _ in _PACKAGES:
        location = tagger(storage)
        if location:
            return location
    raise RuntimeError(f"don't know how to determine data location of {type(storage).__name__}")


def default_restore_location(storage: UntypedStorage, location: str) -> Face:
    """A storage read to the cpu, moved to where the file says; RuntimeError for absent devices."""
    for _, _, deserializer in _PACKAGES:
        result = deserializer(storage, location)
        if result is not None:
            return result
    raise RuntimeError(
        "don't know how to restore data location of torch.storage.UntypedStorage (tagged with"
        f" {location})"
    )


def _tag(storage: Face) -> str:
    return str(storage.device)


def _restore(storage: UntypedStorage, location: str) -> UntypedStorage | None:
    kind = location.partition(":")[0]
    kind = STANDING_IN.get(kind, kind)
    if kind in ("cuda", "xpu", "mps", "hpu"):
        name = kind.upper()
        raise RuntimeError(
            f"Attempting to deserialize object on a {name} device but"
            f" torch.{kind}.is_available() is False. If you are running on a CPU-only machine,"
            " please use torch.load with map_location=torch.device('cpu') to map your storages to"
            " the CPU."
        )
    if kind not in ("cpu", "npu", "meta"):
        return None
    device = resolve(location)
    return UntypedStorage.of(moved(storage._storage, device), device)


register_package(10, _tag, _restore)


def moved(storage: Storage, device: Device) -> Storage:
    """A cpu storage's bytes on another device."""
    if device is CPU:
        return storage
    if device.type == META.type:
        return Storage(MetaMemory(storage.nbytes))
    flat = wrap(geometry((storage.nbytes,), (1,), 0, dt.uint8, CPU), storage)
    return aten.to(flat, device)._storage


def placed(storage: Storage, location: str, where: Place) -> tuple[Storage, Device]:
    """A storage read to the cpu, where `map_location` wants it."""
    face = UntypedStorage.of(storage, CPU)
    result: Any = None
    if isinstance(where, dict):
        location = where.get(location, location)
    elif isinstance(where, str | Device):
        location = str(where)
    elif where is not None:
        result = where(face, location)
    if result is None:
        result = default_restore_location(face, location)
    return result._storage, result.device
