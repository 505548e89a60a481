"""torch.distributed.device_mesh: the class of meshes for isinstance; there are none."""

from __future__ import annotations

from typing import Any

from . import DistributedNotAvailableError


class DeviceMesh:
    """Stands for devices of several processes: making one is refused."""

    def __init__(self, *_: object, **__: object):
        raise DistributedNotAvailableError(
            "torch.distributed.DeviceMesh: there are no meshes, only the default group"
        )


def init_device_mesh(*_: Any, **__: Any) -> Any:
    """Refused: there are none."""
    return DeviceMesh()
