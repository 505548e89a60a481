"""Owns what Huawei's DCMI library says of chips where npu-smi is not: identity, health counters.

`python -m mindtorch_npu.conformance.run.dcmi 0 1` prints it of logical numbers 0 and 1, as JSON: a
driver that hangs holds that process alone. Prototypes and structures: Huawei, DCMI API reference
(hiascend.com, Atlas 200I A2, 25.2.0, "re/api"): dcmi_get_card_id_device_id_from_logicid (api_102),
dcmi_get_device_elabel_info (api_019), dcmi_get_device_pcie_info_v2 (api_015),
dcmi_get_device_temperature, dcmi_get_device_health (api_024), dcmi_get_device_ecc_info (api_044).
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

# Names the library where it is in no usual place, and lets a simulator have one.
LIBRARY: Final = "MINDTORCH_DCMI"
_PATHS: Final = ("/usr/local/dcmi/libdcmi.so", "/usr/local/Ascend/driver/lib64/driver/libdcmi.so")
_TEXT: Final = 256  # MAX_LENTH
_STATES: Final = ("OK", "Warning", "Alarm", "Critical")  # as npu-smi calls 0 to 3
_MEMORIES: Final = {"ddr": 0, "hbm": 2}  # dcmi_device_type


class _Label(ctypes.Structure):
    _fields_ = [(name, ctypes.c_char * _TEXT) for name in (
        "product_name", "model", "manufacturer", "manufacturer_date", "serial_number"
    )]  # fmt: skip


class _Pcie(ctypes.Structure):
    _fields_ = [
        *[(name, ctypes.c_uint) for name in ("venderid", "subvenderid", "deviceid", "subdeviceid")],
        ("domain", ctypes.c_int),
        *[(name, ctypes.c_uint) for name in ("bdf_busid", "bdf_deviceid", "bdf_funcid")],
        ("reserve", ctypes.c_ubyte * 32),
    ]


# Counters of a memory behind `enable_flag`, in npu-smi's words.
_COUNTERS: Final = (
    "single bit error count", "double bit error count", "single bit aggregate total err cnt",
    "double bit aggregate total err cnt", "single bit isolated pages count",
    "double bit isolated pages count",
)  # fmt: skip


class _Ecc(ctypes.Structure):
    _fields_ = [
        ("enable_flag", ctypes.c_int),
        *[(name.replace(" ", "_"), ctypes.c_uint) for name in _COUNTERS],
    ]


def library() -> str:
    """The path of the library; "" where there is none."""
    named = os.environ.get(LIBRARY)
    if named is not None:
        return named
    return next((path for path in _PATHS if Path(path).is_file()), "")


class Chip:
    """One chip by its logical number; what a function refuses, or is not there, is absent."""

    def __init__(self, dcmi: ctypes.CDLL, logical: int) -> None:
        self._dcmi = dcmi
        card, number = ctypes.c_int(), ctypes.c_int()
        if self._call(
            "dcmi_get_card_id_device_id_from_logicid",
            ctypes.byref(card), ctypes.byref(number), ctypes.c_uint(logical),
        ):  # fmt: skip
            self._address = (card, number)
        else:
            raise LookupError(logical)

    def _call(self, name: str, *arguments: object) -> bool:
        function = getattr(self._dcmi, name, None)
        return function is not None and function(*arguments) == 0

    def _ask(
        self, name: str, answer: ctypes.Structure | ctypes.c_int | ctypes.c_uint, *between: object
    ) -> bool:
        return self._call(name, *self._address, *between, ctypes.byref(answer))

    def identity(self) -> Iterator[tuple[str, str]]:
        label, pcie = _Label(), _Pcie()
        if self._ask("dcmi_get_device_elabel_info", label):
            for name, data in (("serial", label.serial_number), ("model", label.product_name)):
                text = data.decode("utf-8", "replace").strip()
                if text not in ("", "NA"):
                    yield name, text
        if self._ask("dcmi_get_device_pcie_info_v2", pcie):
            bus = f"{pcie.bdf_busid:02x}:{pcie.bdf_deviceid:02x}.{pcie.bdf_funcid:x}"
            yield "bus_id", f"{pcie.domain & 0xFFFFFFFF:04x}:{bus}"

    def health(self) -> Iterator[tuple[str, float | str]]:
        temperature, state = ctypes.c_int(), ctypes.c_uint()
        if self._ask("dcmi_get_device_temperature", temperature):
            yield "temperature (C)", temperature.value
        if self._ask("dcmi_get_device_health", state) and state.value < len(_STATES):
            yield "state", _STATES[state.value]
        for memory, kind in _MEMORIES.items():
            ecc = _Ecc()
            if self._ask("dcmi_get_device_ecc_info", ecc, ctypes.c_int(kind)) and ecc.enable_flag:
                for name in _COUNTERS:
                    yield f"{memory} {name}", getattr(ecc, name.replace(" ", "_"))


def facts(path: str, numbers: Sequence[int]) -> dict[int, dict[str, object]]:
    """What is known of chips by logical numbers; {} for a library that cannot be used."""
    chips: dict[int, dict[str, object]] = {}
    try:
        dcmi = ctypes.CDLL(path)
        if dcmi.dcmi_init() != 0:
            return {}
    except (OSError, AttributeError):
        return {}
    for logical in numbers:
        try:
            chip = Chip(dcmi, logical)
        except LookupError:
            continue
        chips[logical] = {**dict(chip.identity()), "health": dict(chip.health())}
    return chips


if __name__ == "__main__":
    print(json.dumps(facts(library(), [int(word) for word in sys.argv[1:]])))
