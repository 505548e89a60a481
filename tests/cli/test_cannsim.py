"""Commands work where CANN's own simulator is the device: a stand-in of its layout and habits.

The stand-in is `cannsim record PROGRAM -s SOC` as its document describes it: a folder cannsim_* for
the log, tools/simulator/<soc>/lib first in LD_LIBRARY_PATH, one device. Its libraries are those of
the bundled simulator in the layout of a toolkit.
"""

import os
import subprocess
import sys
from pathlib import Path
from shutil import copy

import pytest

from aclnn_bindings.install.camodel import LIBRARY, camodel
from aclnn_bindings.install.library import bundled_simulator

pytestmark = pytest.mark.skipif(bundled_simulator() is None, reason="the simulator is not built")

CANNSIM = """#!/bin/bash
# cannsim record PROGRAM [ARGUMENT …] -s SOC
shift; soc="${@: -1}"; set -- "${@:1:$#-2}"
home="$(cd "$(dirname "$0")/.." && pwd)"
folder="cannsim_0_$(basename "$1")"; mkdir -p "$folder"
export LD_LIBRARY_PATH="$home/tools/simulator/$soc/lib:$home/lib64" ASCEND_HOME_PATH="$home"
export ACLSIM_SOC=Ascend950PR_9599 ACLSIM_DEVICES=1
"$@" 2>&1 | tee "$folder/cannsim.log"
exit "${PIPESTATUS[0]}"
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    simulator, home = Path(str(bundled_simulator())), tmp_path_factory.mktemp("cann-9.1.0")
    for name in ("include", "share"):
        (home / name).symlink_to(simulator / name)
    (home / "lib64").mkdir()
    for library in (simulator / "lib64").glob("lib*.so"):
        if not library.name.startswith("libopapi_"):
            (home / "lib64" / library.name).symlink_to(library)
    models = home / "tools/simulator/Ascend950/lib"
    models.mkdir(parents=True)
    for name in (LIBRARY, "libruntime.so"):
        copy(simulator / "lib64/libruntime.so", models / name)
    (home / "bin").mkdir()
    (home / "bin/cannsim").write_text(CANNSIM)
    (home / "bin/cannsim").chmod(0o755)
    return home


def record(home: Path, tmp_path: Path, *command: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "mindtorch_npu", *command]
    return subprocess.run(
        [home / "bin/cannsim", "record", *program, "-s", "Ascend950"],
        cwd=tmp_path,
        text=True,
        capture_output=True,
        check=False,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
    )


def test_the_simulator_is_found_where_the_loader_reaches_it(home):
    models = home / "tools/simulator/Ascend950/lib"
    assert camodel({"LD_LIBRARY_PATH": f"{models}:{home}/lib64"}) == models
    assert camodel({"LD_LIBRARY_PATH": f"{home}/lib64"}) is None


def test_probe_says_what_the_device_is_and_finds_no_other_cann(home, tmp_path):
    done = record(home, tmp_path, "probe")
    assert done.returncode == 0, done.stdout
    assert "CANN's simulator (cannsim, npusim) is the device" in done.stdout
    assert "another CANN" not in done.stdout


def test_check_uses_one_worker_and_waits_longer(home, tmp_path):
    command = ("check", "add", "--alone", "--dtype", "float32", "--form", "functional")
    done = record(home, tmp_path, *command, "--timeout", "0.001")
    assert done.returncode == 0, done.stdout  # a case that had but a millisecond would hang
    assert "FAIL" not in done.stdout
    assert (tmp_path / f"cannsim_0_{Path(sys.executable).name}/cannsim.log").stat().st_size > 0


def test_run_records_a_program(home, tmp_path):
    program = "import mindtorch as t; print((t.ones(2, device='npu') + 1).sum().item())"
    done = record(home, tmp_path, "run", "--summary", "--", sys.executable, "-c", program)
    assert done.returncode == 0, done.stdout
    assert "4.0" in done.stdout
    assert "aclnnAdd" in done.stdout
