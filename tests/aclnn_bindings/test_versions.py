"""Which file names which release, in the layouts of CANN 8.1 and of 8.5 and later."""

from pathlib import Path

import pytest

from aclnn_bindings.install.versions import read_versions


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("include/version/cann_version.h", '#define CANN_VERSION_STR "8.1.RC1"\n', "8.1.RC1"),
        ("aarch64-linux/ascend_toolkit_install.info", "version=8.0.RC3\narch=x\n", "8.0.RC3"),
        ("version.cfg", "runtime_running_version=[7.7.0.1.238:8.1.RC1]\n", "8.1.RC1"),
        ("runtime/version.info", "Version=7.7.0.1.238\nversion_dir=8.1.RC1\n", "8.1.RC1"),
        ("share/info/runtime/version.info", "Version=9.0.0\n", "9.0.0"),
        ("version.info", "Version=9.1.0\n", "9.1.0"),
    ],
)
def test_each_file_names_the_toolkit(tmp_path: Path, name: str, text: str, expected: str) -> None:
    root = tmp_path / "root"
    write(root, name, text)
    found = read_versions(root, tmp_path)
    assert found.toolkit == expected
    assert found.source == str(root / name)


def test_the_folder_names_it_when_no_file_does(tmp_path: Path) -> None:
    (tmp_path / "cann-8.5.0").mkdir()
    (tmp_path / "cann").symlink_to(tmp_path / "cann-8.5.0")
    assert read_versions(tmp_path / "cann", tmp_path).toolkit == "8.5.0"


def test_driver_firmware_operators_and_kernels_are_read(tmp_path: Path) -> None:
    root = tmp_path / "8.1.RC1"
    write(tmp_path, "driver/version.info", "Version=25.0.rc1\npackage_version=25\n")
    write(tmp_path, "firmware/version.info", "Version=7.7.0.1.231\n")
    write(root, "opp/version.info", "Version=7.7.0.1.238\n")
    for soc in ("ascend910b", "ascend310p", "config"):
        write(root, f"opp/built-in/op_impl/ai_core/tbe/kernel/{soc}/add.json", "{}")
    found = read_versions(root, tmp_path)
    assert (found.driver, found.firmware, found.opp) == ("25.0.rc1", "7.7.0.1.231", "7.7.0.1.238")
    assert found.kernels == ("ascend310p", "ascend910b")


def test_nothing_is_none_not_a_guess(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    found = read_versions(tmp_path / "root", tmp_path)
    assert (found.toolkit, found.driver, found.opp, found.kernels) == (None, None, None, ())


def test_a_simulator_says_so_and_has_no_driver(tmp_path: Path) -> None:
    write(tmp_path, "driver/version.info", "Version=25.0\n")
    write(tmp_path, "s/version.info", "version_dir=9.1.0\nkind=simulator\ncatalog=2026-08\n")
    found = read_versions(tmp_path / "s", tmp_path)
    assert (found.simulator, found.catalog, found.toolkit, found.driver) == (
        True,
        "2026-08",
        "9.1.0",
        None,
    )
