"""`run --simulator` and `sim` lead programs to the bundled simulator."""

import subprocess
import sys
from pathlib import Path

import pytest
from mindtorch_npu import exits, main

from aclnn_bindings.install import simulated
from aclnn_bindings.install.library import bundled_simulator

pytestmark = pytest.mark.skipif(bundled_simulator() is None, reason="the simulator is not built")

RUN = ("run", "--simulator")
LEAK = """
import ctypes
acl = ctypes.CDLL("libascendcl.so")
acl.aclInit(None), acl.aclrtSetDevice(0)
event = ctypes.c_void_p()
assert acl.aclrtCreateEvent(ctypes.byref(event)) == 0
{clean}
acl.aclrtResetDevice(0), acl.aclFinalize()
"""


def leave(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main.main(list(arguments))
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_env_prints_exports_that_a_shell_understands(capfd: pytest.CaptureFixture[str]) -> None:
    assert leave("sim", "env") == exits.OK
    script = capfd.readouterr().out + '\nls "$ASCEND_HOME_PATH/lib64" "$ASCEND_OPP_PATH"'
    listed = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert "libopapi.so" in listed.stdout


def test_run_ends_with_the_findings_of_strict_mode(capfd: pytest.CaptureFixture[str]) -> None:
    leaky = LEAK.format(clean="")
    assert leave(*RUN, "--strict", "--", sys.executable, "-c", leaky) == exits.PROBLEMS
    error = capfd.readouterr().err
    assert "leak in aclFinalize: aclrtEvent" in error
    assert "remedy:" in error


@pytest.mark.parametrize("asked", [["--strict", "error"], ["--strict=abort"]])
def test_findings_fail_the_run_when_asked(asked: list[str]) -> None:
    leaky = LEAK.format(clean="")
    assert leave(*RUN, *asked, "--", sys.executable, "-c", leaky) != exits.OK
    clean = LEAK.format(clean="acl.aclrtDestroyEvent(event)")
    assert leave(*RUN, *asked, "--", sys.executable, "-c", clean) == exits.OK


def test_run_of_a_clean_program_finds_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    clean = LEAK.format(clean="acl.aclrtDestroyEvent(event)")
    assert leave(*RUN, "--strict", "--", sys.executable, "-c", clean) == exits.OK
    assert "no misuse found" in capfd.readouterr().err


def test_run_leaves_with_the_program_s_own_code() -> None:
    assert leave(*RUN, sys.executable, "-c", "raise SystemExit(7)") == 7
    assert leave(*RUN, "sh", "-c", "kill -9 $$") == 137


def test_run_of_a_missing_program_is_a_usage_error(capfd: pytest.CaptureFixture[str]) -> None:
    assert leave(*RUN, "/no/such/program") == exits.USAGE
    assert "/no/such/program" in capfd.readouterr().err


def test_the_product_reaches_the_program(capfd: pytest.CaptureFixture[str]) -> None:
    ask = (
        "import ctypes; acl = ctypes.CDLL('libascendcl.so'); "
        "acl.aclrtGetSocName.restype = ctypes.c_char_p; print(acl.aclrtGetSocName().decode())"
    )
    assert leave(*RUN, "--soc", "310P", sys.executable, "-c", ask) == exits.OK
    assert capfd.readouterr().out == "Ascend310P3\n"


def test_devices_and_memory_reach_the_program(capfd: pytest.CaptureFixture[str]) -> None:
    ask = (
        "import ctypes; acl = ctypes.CDLL('libascendcl.so'); n = ctypes.c_uint32(); "
        "free, total = ctypes.c_size_t(), ctypes.c_size_t(); "
        "acl.aclInit(None), acl.aclrtGetDeviceCount(ctypes.byref(n)), acl.aclrtSetDevice(0); "
        "acl.aclrtGetMemInfo(1, ctypes.byref(free), ctypes.byref(total)); "
        "print(n.value, total.value); acl.aclrtResetDevice(0), acl.aclFinalize()"
    )
    wanted = ("--devices", "5", "--memory", "96M")
    assert leave(*RUN, *wanted, sys.executable, "-c", ask) == exits.OK
    assert capfd.readouterr().out == f"5 {96 << 20}\n"


@pytest.mark.parametrize("wrong", [("--memory", "lots"), ("--memory", "0"), ("--devices", "0")])
def test_wrong_sizes_are_usage_errors(
    wrong: tuple[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert leave(*RUN, *wrong, "true") == exits.USAGE
    assert wrong[0] in capfd.readouterr().err


def test_the_simulators_settings_are_refused_on_another_install(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "cann"
    (home / "lib64").mkdir(parents=True)
    (home / "include" / "acl").mkdir(parents=True)
    for name in ("libascendcl.so", "libopapi.so", "libnnopbase.so"):
        (home / "lib64" / name).touch()
    assert leave("run", "--home", str(home), "--soc", "310P", "true") == exits.USAGE
    assert "--soc is the simulator's" in capfd.readouterr().err


def test_a_file_of_known_findings_that_is_not_there_is_a_usage_error(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert leave(*RUN, "--strict", "--allow", "nobody", "true") == exits.USAGE
    assert "--allow nobody: no such file" in capfd.readouterr().err


def test_info_lists_operators_and_products(capfd: pytest.CaptureFixture[str]) -> None:
    assert leave("sim", "info") == exits.OK
    out = capfd.readouterr().out
    assert " Add " in out
    assert simulated.products()[0] == "Ascend910B2"
    assert all(name in out for name in simulated.products())


def test_environment_keeps_what_was_on_the_library_path() -> None:
    made = simulated.environment({"LD_LIBRARY_PATH": "/opt/x"})
    assert made["LD_LIBRARY_PATH"].endswith(":/opt/x")
    assert (Path(made["ASCEND_HOME_PATH"]) / "include" / "acl" / "acl.h").exists()
