"""Wrong calls drawn by `python -m tests.opdb.wrong_calls`, and others: the whole text is torch's.

`data/wrong_calls.txt` holds calls of all families of names that agree, on the cpu and on an NPU.
"""

from pathlib import Path

import pytest

from tests.opdb import wrong_calls

TABLE = (Path(__file__).parent / "data" / "wrong_calls.txt").read_text().splitlines()
SEVERAL_LINES = "x.lt(None)"
CALLS = [line.replace("\\n", "\n") for line in TABLE]


@pytest.mark.parametrize(("device", "step"), [("cpu", 1), ("npu", 5)])
def test_wrong_calls_are_refused_as_torch_refuses_them(device, step):
    pytest.importorskip("torch", reason="torch 2.13 is the oracle")
    calls = [SEVERAL_LINES, *CALLS[::step]]
    results = wrong_calls.compare(calls, device, size=len(calls))
    assert len(results) == len(calls)
    assert [r for r in results if r[1] != r[2]] == []
    assert "Number other" in results[0][1][1]


def test_texts_are_compared_whole():
    assert wrong_calls.full(ValueError("a\nb")) == "a\nb"
