"""Robson's pattern against the allocator: how much it reserves for what is in use at most.

`python tests/aclnn_bindings/robson.py` prints, as blocks grow, the largest reserved over the most
that was ever in use. No allocator that leaves blocks where they are can stay below
1/2 log2(n) + 1 (n: largest over smallest block; J. M. Robson, Bounds for Some Functions Concerning
Dynamic Storage Allocation, JACM 21, 1974): 6.5 for blocks of 512 bytes to 1 MiB.
"""

import os
from collections.abc import Iterator
from math import log2

UNIT, PADDING = 512, 32


def pattern(live: int, largest: int) -> Iterator[tuple[int, float, float]]:
    """(bytes of a block, reserved over live so far, the least that is possible), size by size."""
    from aclnn_bindings import open as open_cann
    from aclnn_bindings.runtime.native import lib

    runtime = open_cann(simulator=True).runtime
    device = runtime.device()
    stream = device.default_stream.address
    blocks: dict[int, int] = {}
    used, offset, size = 0, 0, UNIT

    def fill() -> None:
        nonlocal used
        while used + size <= live:
            address = int(lib.mt_alloc(stream, size - PADDING))
            assert address
            blocks[address] = size
            used += size

    def occupies(address: int, nbytes: int, at: int) -> bool:
        return (address - at) % size <= 0 or (address - at) % size + nbytes > size

    while size <= largest:
        if size > UNIT:
            places = (offset, offset + size // 2)
            waste = [sum(size - n for a, n in blocks.items() if occupies(a, n, p)) for p in places]
            offset = places[waste[1] > waste[0]]
            for address, nbytes in [*blocks.items()]:
                if not occupies(address, nbytes, offset):
                    lib.mt_free(address)
                    used -= blocks.pop(address)
        fill()
        reserved = device.memory().stats["reserved_bytes.all.peak"]
        yield size, reserved / live, log2(size / UNIT) / 2 + 1
        size *= 2
    for address in blocks:
        lib.mt_free(address)
    runtime.close()


if __name__ == "__main__":
    os.environ.setdefault("ACLSIM_STRICT", "off")
    for size, ratio, bound in pattern(64 << 20, 16 << 20):
        print(f"{size:>10} bytes  {ratio:5.2f} x  (at least {bound:.1f})")
