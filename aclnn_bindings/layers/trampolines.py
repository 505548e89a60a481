"""Owns the machine code of a shim: one trampoline and one stub per symbol, and what they share.

A trampoline jumps through the symbol's slot. A slot holds its stub's address until the core has
decided: then the real function's, where no layer looks, else the stub's for good. A stub loads the
symbol's number and jumps to the core's entry with the shim's descriptor. Only registers that no
calling convention passes arguments in are touched: r10 and r11 (System V ABI, AMD64 supplement,
3.2.3), x9, x16 and x17 (Procedure Call Standard for the Arm 64-bit Architecture, 6.1.1).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

SIZE: Final = 16  # bytes of a trampoline, of a stub, and of the shared tail


@dataclass(frozen=True, slots=True)
class ImageAddresses:
    """Addresses inside the image: of the code, of the slots, and of the descriptor."""

    text: int
    slots: int
    descriptor: int


Code = Callable[[int, ImageAddresses], bytes]


@dataclass(frozen=True, slots=True)
class Machine:
    """An architecture: its ELF number, page size, relocation types and code for `count` symbols."""

    number: int
    page: int
    relative: int
    absolute: int
    code: Code


def size_of(count: int) -> int:
    """Bytes of code for `count` symbols."""
    return SIZE * (2 * count + 1)


def stub_of(index: int, count: int, places: ImageAddresses) -> int:
    """The address of symbol `index`'s stub, which its slot holds at first."""
    return places.text + SIZE * (count + index)


def _x86_64(count: int, places: ImageAddresses) -> bytes:
    """endbr64; jmp *slot(%rip) — endbr64; mov $index, %r11d; jmp tail — lea, jmp *(%r10)."""
    tail = places.text + SIZE * 2 * count
    jumps = (
        b"\xf3\x0f\x1e\xfa\xff\x25"
        + struct.pack("<i", places.slots + 8 * i - (places.text + SIZE * i + 10))
        + b"\xcc" * 6
        for i in range(count)
    )
    stubs = (
        b"\xf3\x0f\x1e\xfa\x41\xbb"
        + struct.pack("<I", i)
        + b"\xe9"
        + struct.pack("<i", tail - (stub_of(i, count, places) + 15))
        + b"\xcc"
        for i in range(count)
    )
    last = b"\x4c\x8d\x15" + struct.pack("<i", places.descriptor - (tail + 7)) + b"\x41\xff\x22"
    return b"".join([*jumps, *stubs, last.ljust(SIZE, b"\xcc")])


def _adrp(register: int, at: int, target: int) -> int:
    pages = (target >> 12) - (at >> 12)
    return 0x90000000 | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5 | register


def _aarch64(count: int, places: ImageAddresses) -> bytes:
    """bti c; adrp, ldr, br x16 — bti c; movz, movk w17; b tail — adrp, add x16; ldr, br x9."""
    tail = places.text + SIZE * 2 * count
    words: list[int] = []
    for i in range(count):
        at, slot = places.text + SIZE * i, places.slots + 8 * i
        load = 0xF9400210 | (slot & 0xFFF) >> 3 << 10
        words += [0xD503245F, _adrp(16, at + 4, slot), load, 0xD61F0200]
    for i in range(count):
        distance = (tail - (stub_of(i, count, places) + 12)) >> 2
        high = 0x72A00011 | (i >> 16) << 5
        words += [0xD503245F, 0x52800011 | (i & 0xFFFF) << 5, high,
                  0x14000000 | distance & 0x3FFFFFF]  # fmt: skip
    place = places.descriptor
    words += [_adrp(16, tail, place), 0x91000210 | (place & 0xFFF) << 10, 0xF9400209, 0xD61F0120]
    return struct.pack(f"<{len(words)}I", *words)


# Numbers of machines and relocations: System V gABI; AMD64 supplement 4.4; ELF for AArch64 5.7.
MACHINES: Final = {
    "x86_64": Machine(62, 0x1000, 8, 1, _x86_64),
    "aarch64": Machine(183, 0x10000, 1027, 257, _aarch64),
}
