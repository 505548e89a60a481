"""The caching allocator, buffers and copies."""

import ctypes
import itertools
import random
from collections.abc import Iterator

import numpy as np
import pytest
from stub_acl import Stub

from aclnn_bindings.errors import ArgumentError, ClosedHandleError, UnknownPointerError
from aclnn_bindings.runtime.native import ffi, lib, throw
from aclnn_bindings.runtime.status import AclOutOfMemoryError

MIB = 1 << 20


def alloc(stub: Stub, nbytes: int) -> int:
    address = int(lib.mt_alloc(stub.cann.runtime.current_stream().address, nbytes))
    assert address
    return address


def stat(stub: Stub, name: str) -> int:
    return stub.cann.runtime.device().memory().stats[name]


def test_blocks_keep_padding_and_granularity(stub: Stub) -> None:
    for nbytes, taken in [(0, 512), (1, 512), (480, 512), (481, 1024), (1000, 1536)]:
        address = alloc(stub, nbytes)
        block = ffi.new("mt_block *")
        assert lib.mt_block_at(address, block) == 0
        assert (block.bytes, block.requested) == (taken, nbytes)
        assert address % 64 == 0
        lib.mt_free(address)


def test_without_caching_each_block_is_an_allocation_that_goes_back(
    stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTORCH_NO_NPU_MEMORY_CACHING", "1")
    addresses = [alloc(stub, nbytes) for nbytes in (1, 100, 5000, 3 * MIB)]
    assert stat(stub, "reserved_bytes.all.current") == 5101 + 3 * MIB
    assert stat(stub, "segment.all.current") == len(addresses)
    for address in addresses:
        assert lib.mt_free(address) == 0
    assert stat(stub, "reserved_bytes.all.current") == 0
    assert lib.mt_free(addresses[0]) != 0


@pytest.fixture
def guarded(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    """The stub with guards around its blocks."""
    monkeypatch.setenv("MINDTORCH_MEMORY_GUARD", "exact")
    yield stub
    lib.mt_memory_garbage(-1)


def overwritten(stub: Stub, address: int, offset: int, count: int = 1) -> list[str]:
    """What is told after bytes at an address were changed."""
    for at in range(address + offset, address + offset + count):
        byte = ctypes.c_ubyte.from_address(at)
        byte.value ^= 1
    return [str(t) for t in stub.cann.runtime.device().trespasses()]


@pytest.mark.parametrize(("offset", "count", "words"), [
    (100, 1, "1 from 0 after its end"), (103, 4, "4 from 3 after its end"),
    (-1, 1, "1 before its start"),
])  # fmt: skip
@pytest.mark.parametrize("freed", [False, True])
def test_what_is_written_around_a_guarded_block_is_told_once(
    guarded: Stub, offset: int, count: int, words: str, freed: bool
) -> None:
    address = alloc(guarded, 100)
    if freed:
        assert lib.mt_free(address) == 0
    told = overwritten(guarded, address, offset, count)
    assert told == [f"a tensor of 100 bytes was overrun; bytes that changed: {words}"]
    assert guarded.cann.runtime.device().trespasses() == []


def test_what_is_written_into_a_guarded_block_is_nobody_s_business(guarded: Stub) -> None:
    address = alloc(guarded, 100)
    assert overwritten(guarded, address, 0, 100) == []


def test_a_copy_of_one_guard_onto_another_shows(guarded: Stub) -> None:
    first, second = alloc(guarded, 64), alloc(guarded, 64)
    ctypes.memmove(second - 8, first - 8, 80)
    (trespass,) = guarded.cann.runtime.device().trespasses()
    assert (trespass.nbytes, trespass.before > 0, trespass.behind > 0) == (64, True, True)


def test_a_freed_guarded_block_waits_for_a_look_at_its_guards(guarded: Stub) -> None:
    address = alloc(guarded, 100)
    assert lib.mt_free(address) == 0
    assert lib.mt_free(address) != 0
    assert alloc(guarded, 100) != address
    guarded.cann.runtime.device().trespasses()
    assert alloc(guarded, 100) == address


@pytest.mark.parametrize("nbytes", [1, 100, 300_000])
def test_a_guarded_block_is_full_of_the_garbage_that_was_asked_for(
    guarded: Stub, nbytes: int
) -> None:
    guarded.cann.runtime.start()
    assert lib.mt_memory_garbage(0x3C)
    address = alloc(guarded, nbytes)
    guarded.cann.runtime.device().synchronize()
    assert ctypes.string_at(address, nbytes) == b"\x3c" * nbytes


def test_a_freed_block_is_reused_by_the_next_request_of_its_size(stub: Stub) -> None:
    for nbytes in (100, 5000, 3 * MIB):
        first = alloc(stub, nbytes)
        lib.mt_free(first)
        assert alloc(stub, nbytes) == first


def test_small_and_large_requests_take_segments_of_documented_sizes(stub: Stub) -> None:
    for nbytes, segment in [(100, 2 * MIB), (2 * MIB, 20 * MIB), (31 * MIB, 32 * MIB)]:
        before = stat(stub, "reserved_bytes.all.current")
        alloc(stub, nbytes)
        assert stat(stub, "reserved_bytes.all.current") - before == segment


def test_neighbours_merge_so_that_an_emptied_cache_returns_everything(stub: Stub) -> None:
    rng = random.Random(3)
    live = [alloc(stub, rng.choice((1, 700, 40_000, 900_000, 3 * MIB))) for _ in range(200)]
    rng.shuffle(live)
    for address in live:
        assert lib.mt_free(address) == 0
    assert stat(stub, "allocated_bytes.all.current") == 0
    stub.cann.runtime.device().empty_cache()
    assert stat(stub, "reserved_bytes.all.current") == 0
    assert stub.live("device_memory") == 0


def test_blocks_never_overlap_under_random_use(stub: Stub) -> None:
    rng = random.Random(11)
    live: dict[int, int] = {}
    for _ in range(4000):
        if live and rng.random() < 0.48:
            address = rng.choice(list(live))
            del live[address]
            assert lib.mt_free(address) == 0
        else:
            nbytes = int(2 ** rng.uniform(0, 22))
            live[alloc(stub, nbytes)] = nbytes
    spans = sorted((address, address + nbytes + 32) for address, nbytes in live.items())
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))
    assert stat(stub, "allocation.all.current") == len(live)
    assert stat(stub, "requested_bytes.all.current") == sum(live.values())


def test_freeing_twice_is_named(stub: Stub) -> None:
    address = alloc(stub, 100)
    assert lib.mt_free(address) == 0
    assert lib.mt_free(address) == lib.MT_UNKNOWN_POINTER
    with pytest.raises(UnknownPointerError, match="freed before, or never allocated"):
        throw(stub.cann.runtime.codes)


def test_statistics_count_peaks_and_purposes(stub: Stub) -> None:
    device = stub.cann.runtime.device()
    buffers = [device.buffer(1000) for _ in range(3)]
    assert stat(stub, "buffers_bytes") == 3 * 1536
    for buffer in buffers:
        buffer.close()
    assert stat(stub, "allocation.small_pool.current") == 0
    assert stat(stub, "allocation.small_pool.peak") == 3
    assert stat(stub, "allocation.all.freed") == 3
    device.reset_peak()
    assert stat(stub, "allocation.small_pool.peak") == 0


def test_when_the_device_is_full_the_cache_is_returned_and_the_request_retried(stub: Stub) -> None:
    stub.set("memory_left", 30 * MIB)
    lib.mt_free(alloc(stub, 15 * MIB))
    assert stat(stub, "reserved_bytes.all.current") == 16 * MIB
    alloc(stub, 20 * MIB)
    assert stat(stub, "num_alloc_retries") == 1
    assert stat(stub, "num_ooms") == 0


def test_a_smaller_segment_is_tried_before_giving_up(stub: Stub) -> None:
    stub.set("memory_left", 3 * MIB)
    alloc(stub, 2 * MIB)
    assert stat(stub, "reserved_bytes.all.current") == 2 * MIB + 512


def test_an_out_of_memory_error_says_who_holds_what(stub: Stub) -> None:
    device = stub.cann.runtime.device()
    stub.set("memory_left", 40 * MIB)
    held = device.buffer(16 * MIB)
    tensor = alloc(stub, 15 * MIB)
    with pytest.raises(AclOutOfMemoryError) as caught:
        device.buffer(100 * MIB)
    text = str(caught.value)
    assert "asked for 100.00 MiB" in text
    assert "tensors 16.00 MiB" in text
    assert "buffers 16.00 MiB" in text
    assert "stream 0x" in text
    assert "the device has" in text
    assert "CANN says: EL0004: out of memory" in text
    assert isinstance(caught.value, MemoryError)
    held.close()
    lib.mt_free(tensor)


def test_a_limit_holds_and_can_be_lifted(stub: Stub) -> None:
    device = stub.cann.runtime.device()
    device.limit_memory(4 * MIB)
    with pytest.raises(AclOutOfMemoryError, match=r"memory limit.*\n.*limit 4.00 MiB"):
        device.buffer(16 * MIB)
    device.limit_memory(0)
    device.buffer(16 * MIB).close()


def test_a_block_used_by_another_stream_waits_for_it(stub: Stub) -> None:
    runtime = stub.cann.runtime
    with runtime.stream() as side:
        address = alloc(stub, 4000)
        assert lib.mt_record_stream(address, side.address) == 0
        stub.set("held_events", 1)
        lib.mt_free(address)
        assert stat(stub, "pending_blocks") == 1
        assert alloc(stub, 4000) != address
        assert lib.mt_free(address) == lib.MT_UNKNOWN_POINTER, "it was freed already"
        stub.set("held_events", 0)
        assert alloc(stub, 4000) == address
        assert stat(stub, "pending_blocks") == 0


def test_a_launch_or_copy_on_another_stream_records_itself(stub: Stub) -> None:
    runtime = stub.cann.runtime
    device = runtime.device()
    with runtime.stream() as side:
        buffer, other = device.buffer(64), device.buffer(64)
        buffer.copy_from(other, stream=side)
        stub.set("held_events", 1)
        buffer.close()
        other.close()
        assert stat(stub, "pending_blocks") == 2
        stub.set("held_events", 0)


def test_events_of_waiting_blocks_are_reused(stub: Stub) -> None:
    runtime = stub.cann.runtime
    with runtime.stream() as side:
        for _ in range(20):
            address = alloc(stub, 4000)
            lib.mt_record_stream(address, side.address)
            lib.mt_free(address)
        assert stub.live("event") == 1


def test_each_stream_has_its_own_pool_which_the_default_one_inherits(stub: Stub) -> None:
    runtime = stub.cann.runtime
    side = runtime.stream()
    stub.set("busy_streams", 1)
    address = int(lib.mt_alloc(side.address, 4000))
    lib.mt_free(address)
    assert alloc(stub, 4000) != address, "another stream's cached block is not taken"
    kept = int(lib.mt_alloc(side.address, 4000))
    side.close()
    assert lib.mt_free(kept) == 0
    assert alloc(stub, 4000) == kept


def test_a_free_segment_of_an_idle_stream_is_taken_before_the_device_is_asked(stub: Stub) -> None:
    side = stub.cann.runtime.stream()
    addresses = [int(lib.mt_alloc(side.address, 3 << 20)) for _ in range(2)]
    lib.mt_free(addresses[1])
    assert alloc(stub, 3 << 20) not in addresses, "part of its segment is in use"
    lib.mt_free(addresses[0])
    side_segment = int(lib.mt_alloc(side.address, 30 << 20))
    lib.mt_free(side_segment)
    assert alloc(stub, 25 << 20) == side_segment
    assert alloc(stub, 19 << 20) == addresses[0], "the parts of a free segment are one"


def test_buffers_round_trip_fill_and_copy(stub: Stub) -> None:
    device = stub.cann.runtime.device()
    with device.buffer(16) as a, device.buffer(16) as b:
        a.write(bytes(range(16)))
        b.copy_from(a)
        assert b.to_bytes() == bytes(range(16))
        b.fill(7)
        b.write(b"xy", offset=3)
        assert b.to_bytes() == b"\7\7\7xy" + b"\7" * 11
        with pytest.raises(ArgumentError, match="write 4 bytes at 14 of a buffer of 16"):
            b.write(b"abcd", offset=14)
        with pytest.raises(ArgumentError, match="sizes must be equal"):
            b.copy_from(device.buffer(8))


def test_a_closed_buffer_names_its_misuse(stub: Stub) -> None:
    buffer = stub.cann.runtime.device().buffer(16)
    buffer.close()
    buffer.close()
    with pytest.raises(ClosedHandleError, match="buffer of 16 bytes: it was closed"):
        buffer.to_bytes()
    with pytest.raises(ArgumentError, match="Buffer of -1 bytes"):
        stub.cann.runtime.device().buffer(-1)


def test_a_dropped_buffer_frees_its_memory(stub: Stub) -> None:
    buffer = stub.cann.runtime.device().buffer(16)
    del buffer
    assert stat(stub, "allocation.all.current") == 0


def test_pinned_memory_copies_both_ways_without_waiting(stub: Stub) -> None:
    runtime = stub.cann.runtime
    device = runtime.device()
    with runtime.pinned(8) as pinned, device.buffer(8) as buffer:
        pinned.memory[:] = b"abcdefgh"
        waits = runtime.counters()["host_syncs"]
        pinned.copy_to(buffer)
        buffer.fill(0)
        pinned.copy_from(buffer)
        assert runtime.counters()["host_syncs"] == waits
        runtime.current_stream().synchronize()
        assert bytes(pinned.memory) == b"\0" * 8
    assert stub.live("host_memory") == 0
    with pytest.raises(ClosedHandleError, match="pinned buffer"):
        pinned.memory  # noqa: B018


def test_device_tensors_keep_dtype_shape_and_strides(stub: Stub) -> None:
    array = np.arange(12, dtype=np.int16).reshape(3, 4)
    tensor = stub.cann.tensor(array)
    assert tensor.spec.dtype == "INT16"
    assert (tensor.numpy() == array).all()
    assert (tensor.view((4, 3), (1, 4)).numpy() == array.T).all()
    assert stub.cann.tensor(np.array([], np.float32)).numpy().shape == (0,)
    with pytest.raises(ArgumentError, match="ACL has no such element type"):
        stub.cann.tensor(np.array(["a"]))
