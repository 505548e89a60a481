"""Custom operator packages: where they are found, which wins, which is not used and why."""

from pathlib import Path

from aclnn_bindings.install.describe import describe
from aclnn_bindings.install.vendors import LIBRARY, vendors


def package(root: Path, headers: bool = True) -> Path:
    (root / "op_api/lib").mkdir(parents=True)
    (root / "op_api/lib" / LIBRARY).touch()
    if headers:
        (root / "op_api/include/aclnn").mkdir(parents=True)
    return root


def test_entries_of_the_variable_come_first_and_in_order(tmp_path: Path) -> None:
    a, b = package(tmp_path / "a"), package(tmp_path / "b")
    listed = package(tmp_path / "root/opp/vendors/c")
    (listed.parent / "config.ini").write_text("load_priority=c\n")
    found = vendors(tmp_path / "root", {"ASCEND_CUSTOM_OPP_PATH": f"{b}:{a}"})
    assert [(v.name, v.priority) for v in found] == [("b", 0), ("a", 1), ("c", 2)]
    assert found[2].found_via == "vendors/config.ini"


def test_an_entry_may_be_the_library_folder_itself(tmp_path: Path) -> None:
    a = package(tmp_path / "a")
    found = vendors(tmp_path, {"ASCEND_CUSTOM_OPP_PATH": str(a / "op_api/lib")})
    assert [(v.name, v.library) for v in found] == [("a", a / "op_api/lib" / LIBRARY)]


def test_load_priority_orders_packages_and_leaves_out_the_others(tmp_path: Path) -> None:
    folder = tmp_path / "opp/vendors"
    for name in ("one", "two", "idle"):
        package(folder / name)
    (folder / "config.ini").write_text("load_priority = two, one\n")
    found = vendors(tmp_path, {})
    assert [v.name for v in found] == ["two", "one", "idle"]
    assert found[2].library is None
    assert "not in load_priority" in found[2].problem


def test_a_package_without_its_library_says_so(tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    found = vendors(tmp_path, {"ASCEND_CUSTOM_OPP_PATH": f"{tmp_path}/bare:{tmp_path}/gone"})
    assert ["does not exist" in v.problem for v in found] == [True, True]


def test_the_same_file_twice_is_shadowed(tmp_path: Path) -> None:
    a = package(tmp_path / "a")
    found = vendors(tmp_path, {"ASCEND_CUSTOM_OPP_PATH": f"{a}:{a}/op_api/lib"})
    assert found[1].shadowed == "same file as a, priority 0"


def test_custom_libraries_are_searched_before_those_of_the_install(tmp_path: Path) -> None:
    a = package(tmp_path / "a")
    (tmp_path / "root/lib64").mkdir(parents=True)
    (tmp_path / "root/lib64/libopapi.so").touch()
    install = describe(tmp_path / "root", "argument", {"ASCEND_CUSTOM_OPP_PATH": str(a)})
    assert install is not None
    assert [lib.name for lib in install.libraries] == [LIBRARY, "libopapi.so"]
    assert (install.libraries[0].role, install.libraries[0].vendor) == ("custom", "a")
    assert a / "op_api/include" in install.include_dirs
