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
