"""torch.npu says of devices, streams and memory what torch_npu says, in its forms."""

import re

import pytest

import mindtorch as torch

SAID = {
    r"_NPUDeviceProperties\(name='\w+', total_memory=\d+\.\dMB, cube_core_num=\d+,"
    r" vector_core_num=\d+, L2_cache_size=\d+MB\)": lambda: torch.npu.get_device_properties(),
    r"<torch_npu.npu.Stream device=npu:0 npu_stream=0x\w+>": lambda: torch.npu.Stream(),
    "<torch_npu.npu.Event uninitialized>": lambda: torch.npu.Event(),
    r"<torch_npu.npu.Event 0x\w+>": lambda: torch.npu.Stream().record_event(),
    r"tensor\(\[1, 2\], device='npu:0'\)": lambda: torch.npu.LongTensor([1, 2]),
    r"\(0, True, False\)": lambda: (
        torch.npu.Stream().device_index,
        isinstance(torch.ones(1).npu(), torch.npu.FloatTensor),
        torch.npu.can_device_access_peer(0, 0),
    ),
}


@pytest.mark.parametrize("form", SAID)
def test_what_is_said_has_torch_npus_form(form):
    assert re.fullmatch(form, repr(SAID[form]()))


def test_the_summary_is_a_table_of_the_counters():
    lines = torch.npu.memory_summary(abbreviated=True).splitlines()
    assert {len(line) for line in lines} == {77}
    assert "device ID 0" in lines[1]
    assert sum("Allocated memory" in line for line in lines) == 1


def test_a_device_that_is_not_there_is_named_so():
    for ask in (torch.npu.get_device_name, torch.npu.get_device_properties):
        with pytest.raises(AssertionError, match="Invalid device id"):
            ask(99)


def test_autocast_on_npu_computes_in_float32_too():
    x = torch.ones(2, 2, device="npu", dtype=torch.float16)
    with torch.autocast("npu", dtype=torch.float32):
        assert (x @ x).dtype is torch.float32


def test_streams_and_events_of_any_device_are_those_of_the_npu():
    start, end = (torch.Event("npu", enable_timing=True) for _ in range(2))
    assert isinstance(start, torch.npu.Event)
    assert isinstance(start, torch.Event)
    with torch.Stream(device="npu:0") as stream:
        assert torch.npu.current_stream() == stream
        start.record()
        end.record(stream)
    end.synchronize()
    assert start.elapsed_time(end) >= 0
    assert (start.device, stream.device) == (torch.device("npu:0"),) * 2
    assert torch.Event(enable_timing=True).device.type == "npu"  # the accelerator


def test_the_allocator_lends_memory_beside_tensors_and_counts_it():
    memory, before = torch.npu.memory, torch.npu.memory_allocated()
    address = torch.npu.caching_allocator_alloc(4096)
    lent = torch.npu.memory_allocated()  # with the allocator's padding
    held = sum(row["allocated_size"] for row in torch.npu.memory_snapshot() if not row["device"])
    assert (held, lent >= before + 4096) == (lent, True)
    torch.npu.caching_allocator_delete(address)
    assert torch.npu.memory_allocated() == before
    with pytest.raises(RuntimeError, match="invalid device pointer"):
        torch.npu.caching_allocator_delete(address)
    tree = memory.memory_stats_as_nested_dict()
    assert tree["allocation"]["all"]["freed"] > 0
    torch.accelerator.reset_accumulated_memory_stats()
    assert memory.memory_stats()["allocation.all.freed"] == 0
    with pytest.warns(DeprecationWarning, match="renamed to torch_npu.npu.memory_reserved"):
        assert memory.memory_cached() == memory.memory_reserved()
    assert memory.get_per_process_memory_fraction() == 1.0


def test_capabilities_are_those_that_the_environment_names(monkeypatch):
    with pytest.warns(UserWarning, match="TORCH_NPU_DEVICE_CAPABILITY"):
        assert torch.npu.get_device_capability() is None
    monkeypatch.setenv("TORCH_NPU_DEVICE_CAPABILITY", "8.0")
    assert torch.npu.get_device_capability() == (8, 0)
    generators = torch.npu.default_generators
    assert (len(generators), generators[0].device.type) == (torch.npu.device_count(), "npu")
    assert torch.npu.random.initial_seed() == torch.npu.initial_seed()
