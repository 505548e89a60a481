"""A trace for Perfetto has named tracks, arrows, device times, memory and readable numbers."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import layered
import pytest

protos = pytest.importorskip(
    "perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="perfetto is not installed"
)

PROGRAM = """
import mindtorch as torch
x = torch.ones(8, 8, device="npu")
def doubled(t):
    return torch.add(t, t, alpha=3)
print(doubled(x).sum().item())
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("perfetto")
    (folder / "program.py").write_text(PROGRAM)
    words = ("--device-time", "--stacks", "--perfetto", str(folder / "trace.pftrace"))
    outcome = layered.run(*words, "--", sys.executable, str(folder / "program.py"))
    assert outcome.code == 0, outcome.err
    return protos.Trace.FromString((folder / "trace.pftrace").read_bytes())


def tracks(trace: Any) -> dict[int, Any]:
    found = (p.track_descriptor for p in trace.packet if p.HasField("track_descriptor"))
    return {track.uuid: track for track in found}


def named(trace: Any, name: str, category: str) -> Any:
    """The one event of a name and a category."""
    (event,) = (p.track_event for p in trace.packet
                if p.track_event.name == name and category in p.track_event.categories)  # fmt: skip
    return event


def arguments(event: Any) -> dict[str, Any]:
    return {a.name: a.string_value or a.int_value for a in event.debug_annotations}


def test_processes_threads_streams_and_memory_are_named_tracks(trace: Any) -> None:
    found = tracks(trace)
    (process,) = (t for t in found.values() if t.HasField("process"))
    assert process.process.process_name.endswith("program.py")
    others = {t.thread.thread_name or t.name.partition(" 0x")[0] for t in found.values()
              if t is not process}  # fmt: skip
    assert {"main", "NPU stream", "device memory"} <= others
    assert all(t.parent_uuid == process.uuid for t in found.values() if t is not process)


def test_arrows_lead_from_phase_1_to_the_launch_to_the_kernel(trace: Any) -> None:
    first = named(trace, "aclnnAddGetWorkspaceSize", "phase 1")
    launch = named(trace, "aclnnAdd", "launch")
    kernel = named(trace, "aclnnAdd", "kernel")
    assert list(first.flow_ids) == list(launch.flow_ids) == list(kernel.terminating_flow_ids)
    found = tracks(trace)
    assert found[launch.track_uuid].HasField("thread")
    assert found[kernel.track_uuid].name.startswith("NPU stream")


def test_kernels_of_a_stream_follow_each_other_and_their_launches(trace: Any) -> None:
    of_streams = {uuid for uuid, t in tracks(trace).items() if t.name.startswith("NPU stream")}
    begins: dict[str, int] = {}
    last = 0
    for packet in trace.packet:
        event = packet.track_event
        if "launch" in event.categories:
            begins[event.name] = packet.timestamp
        if event.track_uuid in of_streams:
            assert packet.timestamp >= max(last, begins.get(event.name, 0))
            last = packet.timestamp
    assert last


def test_arguments_are_numbers_with_the_python_line(trace: Any) -> None:
    shown = arguments(named(trace, "aclnnAddGetWorkspaceSize", "phase 1"))
    assert shown["alpha"] == "3 (INT64)"
    assert shown["self"] == "FLOAT[8, 8]"
    assert "program.py:5 doubled" in shown["python"]
    assert arguments(named(trace, "aclnnReduceSumGetWorkspaceSize", "phase 1"))["dims"] == "0, 1"


def test_the_counter_of_memory_rises_and_returns_to_zero(trace: Any) -> None:
    (counter,) = (uuid for uuid, t in tracks(trace).items() if t.name == "device memory")
    values = [p.track_event.counter_value for p in trace.packet
              if p.track_event.track_uuid == counter]  # fmt: skip
    assert max(values) >= 8 * 8 * 4
    assert values[-1] == 0


def test_every_begin_has_its_end(trace: Any) -> None:
    depth: dict[int, int] = {}
    for event in (p.track_event for p in trace.packet if p.HasField("track_event")):
        if event.type == event.TYPE_COUNTER:
            continue
        step = 1 if event.type == event.TYPE_SLICE_BEGIN else -1
        depth[event.track_uuid] = depth.get(event.track_uuid, 0) + step
    assert set(depth.values()) == {0}


@pytest.mark.skipif(not shutil.which("trace_processor_shell"), reason="no trace processor here")
def test_the_trace_processor_reads_it(trace: Any, tmp_path: Path) -> None:
    (tmp_path / "trace.pftrace").write_bytes(trace.SerializeToString())
    (tmp_path / "query").write_text("select count(*) from flow")
    words = ["trace_processor_shell", "-q", "query", "trace.pftrace"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[-1]) > 0
