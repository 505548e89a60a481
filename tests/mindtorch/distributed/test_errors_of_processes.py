"""What a launcher reads of a process that failed is what torch's processes write."""

import importlib
import json
import re

import pytest

torch = pytest.importorskip("torch")

import mindtorch  # noqa: E402 - torch first: where it is missing, the module is skipped


def _told(library, folder, monkeypatch):
    errors = importlib.import_module(
        f"{library.__name__}.distributed.elastic.multiprocessing.errors"
    )
    path = folder / "error.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(path))

    @errors.record
    def train(text):
        raise ValueError(f"bad {text}")

    @errors.record
    def leave():
        raise SystemExit(3)

    assert errors.record(lambda: 3)() == 3
    with pytest.raises(SystemExit):
        leave()
    assert not path.exists()
    with pytest.raises(ValueError, match="bad step"):
        train("step")
    text = json.loads(path.read_text())
    stack = text["message"]["extraInfo"].pop("py_callstack")
    assert stack.rstrip().endswith("ValueError: bad step")
    text["message"]["extraInfo"].pop("timestamp")
    failures = {
        0: errors.ProcessFailure(local_rank=0, pid=997, exitcode=1, error_file="nowhere"),
        3: errors.ProcessFailure(local_rank=1, pid=998, exitcode=-9, error_file="nowhere"),
    }
    failures[0].timestamp, failures[3].timestamp = 5, 4
    summary = str(errors.ChildFailedError("train.py", failures))
    first, _ = errors.ChildFailedError("train.py", failures).get_first_failure()
    alone = str(errors.ChildFailedError("train.py", {0: failures[0]}))
    return text, re.sub(r"host +: .*", "", summary), first, re.sub(r"host +: .*", "", alone)


def test_errors_are_written_and_summed_up_as_torchs(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    expected = _told(torch, tmp_path / "a", monkeypatch)
    assert _told(mindtorch, tmp_path / "b", monkeypatch) == expected
