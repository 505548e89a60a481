"""The code of written functions lies beside Python's own, and is compiled again where it is not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mindtorch.ops.codes import Codes

CHILD = """
import builtins
import mindtorch as torch
real, sources = builtins.compile, []
def noting(source, filename, *rest, **names):
    sources.append(filename)
    return real(source, filename, *rest, **names)
builtins.compile = noting
x = torch.arange(6.0).reshape(2, 3)
assert (x + x).exp().softmax(-1).sum().item() == 2
print(sum(s.startswith("<mindtorch") for s in sources))
"""


def child(folder: Path, **environment: str) -> int:
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", CHILD], capture_output=True, text=True, check=True,
        env={**clean, "PYTHONPYCACHEPREFIX": str(folder), **environment},
    )  # fmt: skip
    return int(done.stdout)


def test_a_second_process_compiles_nothing_that_the_first_has(tmp_path):
    assert child(tmp_path) > 5
    assert child(tmp_path) == 0
    (file,) = tmp_path.rglob("written.*")
    file.write_bytes(file.read_bytes()[:99])
    assert child(tmp_path) > 5
    assert child(tmp_path) == 0


def test_nothing_is_written_where_python_is_to_write_no_code(tmp_path):
    assert child(tmp_path, PYTHONDONTWRITEBYTECODE="1") > 5
    assert not list(tmp_path.rglob("*"))


@pytest.mark.skipif(sys.dont_write_bytecode, reason="python is to write no code")
def test_two_writers_keep_what_both_have(tmp_path):
    first, second = (Codes(tmp_path / "codes") for _ in range(2))
    first.of("a = 1", "a"), second.of("a = 1", "b")
    first.save(), second.save()
    assert len(Codes(tmp_path / "codes")._read()) == 2
