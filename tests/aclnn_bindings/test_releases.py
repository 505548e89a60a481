"""Releases that are stored as differences, and the simulator as one of them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from aclnn_bindings import bundled_simulator, find_install
from aclnn_bindings.install import documents, elf, search
from aclnn_bindings.install.library import catalog_version, declarations
from aclnn_bindings.interface import catalog, releases
from aclnn_bindings.interface.compare import diff

RELEASES = sorted((Path(catalog.__file__).parents[1] / "catalogs/releases").glob("*.json"))


def test_a_difference_expands_to_the_catalog_that_it_was_taken_from() -> None:
    base, whole = catalog.read("8.1.RC1"), catalog.read("2026-08")
    again = releases.expand(base, releases.difference(base, whole, "8.1.RC1"))
    expected, found = catalog.parse(whole), catalog.parse(again)
    assert dict(found.functions).keys() == dict(expected.functions).keys()
    for name, function in expected.functions.items():
        assert [p.type for p in found.functions[name].params] == [p.type for p in function.params]
        for mine, theirs in zip(found.functions[name].params, function.params, strict=True):
            assert mine.dtypes == theirs.dtypes or not theirs.dtypes, name
    assert (found.enums, found.constants) == (expected.enums, expected.constants)


def test_a_difference_from_itself_holds_no_entries() -> None:
    base = catalog.read("2026-08")
    release = releases.difference(base, base, "2026-08")
    assert not [table for table in releases.TABLES if table in release]
    assert release["removed"] == {}


def test_second_phases_that_a_file_leaves_out_are_read_back() -> None:
    first = ["aclnnStatus", "a.h", "int64_t|n|i|"]
    usual = ["aclnnStatus", "a.h", "void *|workspace|i|", "uint64_t|workspaceSize|i|",
             "aclOpExecutor *|executor|i|", "aclrtStream|stream|i|"]  # fmt: skip
    constant = [*usual[:-1], "const aclrtStream|stream|i|"]
    whole = {"A": usual, "AGetWorkspaceSize": first, "Alone": usual,
             "B": constant, "BGetWorkspaceSize": first}  # fmt: skip
    changed = {**whole, "A": constant, "B": usual}
    before, after = ({**catalog.read("2026-08"), "functions": f} for f in (whole, changed))
    folded = releases.fold(before)
    assert folded["functions"].keys() == whole.keys() - {"A", "B"}
    assert folded["const_streams"].keys() == {"B"}
    assert releases.unfold(folded) == before
    again = releases.expand(before, releases.difference(before, after, "2026-08"))
    assert again["functions"] == changed


def test_headers_and_typedefs_that_a_file_leaves_out_are_read_back() -> None:
    whole = catalog.read("8.1.RC1")
    own = whole["typedefs"].keys() & whole["structs"].keys()
    packed = releases.pack(whole)
    assert len(own - packed["typedefs"].keys()) > 500
    assert releases.unpack(packed) == whole
    assert releases.unpack({**whole, "format": 1}) == whole


@pytest.mark.parametrize("path", RELEASES, ids=lambda p: p.stem)
def test_a_release_holds_only_what_differs(path: Path) -> None:
    release = releases.unpack(json.loads(path.read_text(encoding="utf-8")))
    base = releases.fold(catalog.read(release["base"]))
    for table in releases.TABLES:
        same = [
            n for n, entry in release.get(table, {}).items() if base.get(table, {}).get(n) == entry
        ]
        assert same == [], table


def test_all_catalogs_together_stay_small() -> None:
    folder = Path(catalog.__file__).parents[1] / "catalogs"
    lines = sum(len(p.read_text(encoding="utf-8").splitlines()) for p in folder.rglob("*.json"))
    assert lines <= 6_900


def test_snapshots_of_processes_took_arguments_in_9_1() -> None:
    difference = diff(catalog.load("9.0.0"), catalog.load("9.1.0"))
    changed = {change.name: change.detail for change in difference.breaking}
    assert changed["aclrtSnapShotProcessLock"].startswith("0 -> 2 parameters")
    assert "aclnnAddN" in set(diff(catalog.load("8.5.0"), catalog.load("9.1.0")).added_ops)


def test_documents_of_two_releases_differ_by_products_and_dtypes() -> None:
    changes = {(c.name, c.what): c.detail for c in documents.changes("8.5.0", "9.1.0")}
    assert changes["aclnnAddmmWeightNz", "products"] == "+950"
    assert any(what == "dtypes" for _, what in changes)
    assert documents.changes("8.1.RC1", "9.1.0") == []


@pytest.fixture
def release_8_5(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    if bundled_simulator() is None:
        pytest.skip("the simulator was not built")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(search.RELEASE, "8.5.0")
    root = bundled_simulator()
    assert root is not None
    return root


def test_the_simulator_as_a_release_lacks_what_the_release_lacks(release_8_5: Path) -> None:
    install = find_install(simulator=True)
    assert (install.root, install.version) == (release_8_5, "8.5.0")
    assert catalog_version(install) == "8.5.0"
    exports = elf.read(release_8_5 / "lib64/libopapi.so").exports
    declared = declarations(install)
    for name, there in (("aclnnAdd", True), ("aclnnAddN", False)):
        assert (name in exports) is there
        assert (name in declared.ops) is there
    # 9.1 gave it two parameters that 8.5 did not have.
    assert "aclrtSnapShotProcessLock" not in elf.read(release_8_5 / "lib64/libascendcl.so").exports


def test_the_loader_finds_only_the_functions_of_the_release(release_8_5: Path) -> None:
    code = (
        "import ctypes, sys; l = ctypes.CDLL(sys.argv[1]); "
        "print(hasattr(l, 'aclnnAdd'), hasattr(l, 'aclnnAddN'), hasattr(l, 'aclnnNoSuch'))"
    )
    library = release_8_5 / "lib64/libopapi.so"
    out = subprocess.run(
        [sys.executable, "-c", code, str(library)], capture_output=True, text=True, check=True
    )
    assert out.stdout.split() == ["True", "False", "False"]


def test_a_release_without_a_catalog_is_refused_with_the_known_ones(
    release_8_5: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(search.RELEASE, "7.7.0")
    with pytest.raises(catalog.UnknownVersionError, match=r"8\.5\.0"):
        find_install(simulator=True)
