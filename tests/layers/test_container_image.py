"""A shim is a library that tools and loaders read: its exports, its needs, its machine."""

import time
from pathlib import Path

import pytest

from aclnn_bindings.install import elf
from aclnn_bindings.layers import image

NAMES = tuple(f"aclnnOperator{i}GetWorkspaceSize" for i in range(2746))


def shim(names: tuple[str, ...] = NAMES) -> image.Shim:
    needed = ("/core.so", "/real/libopapi.so")
    return image.Shim("libopapi.so", needed[1], needed, names, tuple(range(len(names))))


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("count", [0, 1, 2, 100, 2746])
def test_a_shim_exports_each_name_and_needs_core_and_library(
    machine: str, count: int, tmp_path: Path
) -> None:
    path = tmp_path / "libopapi.so"
    path.write_bytes(image.write(shim(NAMES[:count]), machine))
    read = elf.read(path)
    assert read.problem == ""
    assert read.machine == machine
    assert read.soname == "libopapi.so"
    assert read.exports == frozenset(NAMES[:count])
    assert read.needed == ("/core.so", "/real/libopapi.so")


def test_a_shim_of_2746_functions_takes_less_than_a_second() -> None:
    start = time.perf_counter()
    image.write(shim(), "x86_64")
    assert time.perf_counter() - start < 1


def test_trampolines_of_aarch64_reach_slot_stub_and_descriptor() -> None:
    """Each instruction is taken apart again, as the architecture's manual encodes it."""
    from aclnn_bindings.layers import trampolines

    places = trampolines.ImageAddresses(text=0x10000, slots=0x53458, descriptor=0x53008)
    count = 70000
    code = trampolines.MACHINES["aarch64"].code(count, places)
    assert len(code) == trampolines.size_of(count)

    def word(at: int) -> int:
        return int.from_bytes(code[at - places.text : at - places.text + 4], "little")

    def page(at: int) -> int:
        assert word(at) & 0x9F00001F == 0x90000010  # adrp x16
        pages = (word(at) >> 5 & 0x7FFFF) << 2 | word(at) >> 29 & 3
        return (at & ~0xFFF) + ((pages ^ 1 << 20) - (1 << 20) << 12)

    for i in (0, 1, 511, 65535, 65536, count - 1):
        at = places.text + 16 * i
        assert word(at + 8) & 0xFFC003FF == 0xF9400210  # ldr x16, [x16, #]
        assert page(at + 4) + (word(at + 8) >> 10 & 0xFFF) * 8 == places.slots + 8 * i
        stub = trampolines.stub_of(i, count, places)
        assert word(stub + 4) & 0xFFE0001F == 0x52800011  # movz w17
        assert word(stub + 8) & 0xFFE0001F == 0x72A00011  # movk w17, lsl 16
        low, high = word(stub + 4) >> 5 & 0xFFFF, word(stub + 8) >> 5 & 0xFFFF
        assert high << 16 | low == i
        assert stub + 12 + 4 * (word(stub + 12) & 0x3FFFFFF) == places.text + 32 * count
    tail = places.text + 32 * count
    assert page(tail) + (word(tail + 4) >> 10 & 0xFFF) == places.descriptor
