"""Owns where a worker's threads run: on the CPUs of its device's memory node, where Linux says so.

The device's PCI address comes from `aclrtDeviceGetPCIBusId` (acl_rt.h); its node and the node's
CPUs from `/sys/bus/pci/devices/*/numa_node` and `/sys/devices/system/node/node*/cpulist` (Linux,
ABI documents sysfs-bus-pci and sysfs-devices-node). Where any of it is silent, nothing changes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import numpy as np

from aclnn_bindings import AclError, BindingError

_SYS: Final = Path("/sys")
_LENGTH: Final = 32  # `0000:00:00.0` and its end, with room


def near(cann: Any, device: str) -> str:
    """Keep this process on the CPUs near `device`; their list, "" where it stays where it was."""
    address = pci_address(cann, int(device.partition(":")[2] or 0))
    listed = cpus_near(address)
    cpus = cpu_set(listed) & os.sched_getaffinity(0) if listed else set()
    if not cpus or cpus == os.sched_getaffinity(0):
        return ""
    os.sched_setaffinity(0, cpus)
    return listed


def pci_address(cann: Any, index: int) -> str:
    """`0000:c1:00.0` of a device; "" where the install has no such function, or it refuses."""
    text = np.zeros(_LENGTH, np.uint8)
    try:  # a typed call takes the message of a refusal, which would be told of the next failure
        cann.function("aclrtDeviceGetPCIBusId")(index, text, _LENGTH)
    except (BindingError, AclError):
        return ""
    return text.tobytes().split(b"\0")[0].decode("ascii", "replace").lower()


def cpus_near(address: str, sys: Path | None = None) -> str:
    """The CPU list of a PCI device's memory node, such as `0-23,96-119`; "" if none is stated."""
    if not address:
        return ""
    sys = sys or _SYS
    try:
        node = int((sys / "bus/pci/devices" / address / "numa_node").read_text())
        if node < 0:
            return ""
        return (sys / f"devices/system/node/node{node}/cpulist").read_text().strip()
    except (OSError, ValueError):
        return ""


def cpu_set(listed: str) -> set[int]:
    """`0-2,8` as {0, 1, 2, 8}."""
    cpus: set[int] = set()
    for part in filter(None, listed.split(",")):
        first, _, last = part.partition("-")
        cpus |= set(range(int(first), int(last or first) + 1))
    return cpus
