"""What readers hold grows with what they show, not with what they read."""

import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mindtorch_npu.conformance.record import journal
from mindtorch_npu.conformance.record.result import Result
from mindtorch_npu.recording import page, rows
from mindtorch_npu.recording.values import Call

from aclnn_bindings.layers import recording_file

MIB = 1 << 20


def peak(work: Callable[[], Any]) -> int:
    """The most memory, in bytes, that Python objects took beyond what was there before."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


class ManyCalls:
    """A recording of `count` calls, each made as it is read."""

    def __init__(self, count: int) -> None:
        self.header, self.count = {"command": ["program"]}, count

    def calls(self) -> Iterator[Call]:
        for i in range(self.count):
            yield Call(number=i, name="aclnnAdd", phase=2, process=1, thread=i % 99, start=i * 10,
                       duration=i * 7919 % 10007, status=0, arguments={"a": str(i) * 20},
                       stack="", device_ns=None, injected=False, finished=True)  # fmt: skip


def test_a_page_holds_the_longest_calls_alone() -> None:
    few = peak(lambda: page.page(ManyCalls(5_000), []))  # type: ignore[arg-type]
    many = peak(lambda: page.page(ManyCalls(20_000), []))  # type: ignore[arg-type]
    assert many < 1.25 * few


def test_a_page_shows_the_longest_calls_within_all() -> None:
    text = page.page(ManyCalls(9_000), [])  # type: ignore[arg-type]
    assert "8 threads" in text
    assert "10.0 µs" in text


def test_a_journal_is_read_a_line_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    book = journal.Journal(path, journal.new_run())
    head = journal.header({"device": "npu:0", "mindtorch_npu": "0.1.0"}, {"level": "quick"}, 1)
    book.write("run", {**head, "node": "n"})
    book.result(Result("add/out/0", "add", "out", "PASS", "float32", "T0"))
    book.close()
    *above, line = path.read_text().splitlines()
    count = 8_000
    lines = [line.replace("add/out/0", f"add/out/{i}") for i in range(count)]
    path.write_text("\n".join([*above, *lines, ""]))
    holder = SimpleNamespace(record=None)
    most = peak(lambda: setattr(holder, "record", journal.read(path)))
    assert len(holder.record.results) == count
    assert most / count < 700  # 23 fields of 8 bytes, the case's name, and its place in a table


def test_a_chunk_larger_than_any_writer_makes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "calls.rec"
    with recording_file.Writer(path) as writer:
        writer.add(recording_file.Chunk(recording_file.ROWS, 0, 0, 0, bytes(16 * MIB)))
    data = bytearray(path.read_bytes())
    path.write_bytes(data[:20] + (0xFFFFFFFF).to_bytes(4, "little") + data[24:])

    def read() -> None:
        with pytest.raises(recording_file.RecordingError, match="more than any writer makes"):
            list(recording_file.chunks(path))

    assert peak(read) < MIB


def test_rows_that_continue_their_call_are_split_in_linear_time() -> None:
    call = rows.CALL.to_bytes(1, "little") + bytes(63)
    words = rows.WORDS.to_bytes(1, "little") + bytes(63)
    calls, more, payloads = rows.split((call + words) * 30_000)
    assert len(calls) == len(more) == 30_000
    assert list(more)[-1] == 29_999
    assert payloads == []
