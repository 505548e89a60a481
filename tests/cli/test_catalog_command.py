"""`catalog`: a catalog written from headers says what the headers say, and is known at once."""

import json

import pytest
from click.testing import CliRunner
from mindtorch_npu import exits
from mindtorch_npu.commands.catalog.command import catalog

from aclnn_bindings import bundled_simulator
from aclnn_bindings.interface import catalog as catalogs
from aclnn_bindings.interface.compact import compact, write


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    catalogs.forget()
    yield tmp_path / "mindtorch-npu" / "catalogs"
    catalogs.forget()


def make(*arguments):
    return CliRunner().invoke(catalog, ["make", *arguments], standalone_mode=False)


@pytest.mark.parametrize("version", catalogs.versions())
def test_a_catalog_written_again_declares_the_same(version, folder):
    declared = catalogs.load(version)
    write(folder / "again.json", compact(declared, version, "1.0", "a test", {}))
    catalogs.forget()
    again = catalogs.load("again")
    assert dict(again.functions) == dict(declared.functions)
    assert dict(again.structs) == dict(declared.structs)
    assert again.enums == declared.enums
    assert again.typedefs == declared.typedefs
    assert again.constants == declared.constants


def test_the_simulator_s_headers_become_a_version_that_is_known(folder):
    result = make("--home", str(bundled_simulator()), "--version", "99.1.RC1")
    assert result.return_value == exits.OK, result.output
    assert catalogs.versions()[-1] == "99.1.RC1"
    assert catalogs.version_of("99.1.RC1.2") == "99.1.RC1"
    newest = catalogs.load(catalogs.versions()[-2])
    made = catalogs.load("99.1.RC1")
    assert made.functions["aclnnAdd"].prototype == newest.functions["aclnnAdd"].prototype
    assert catalogs.library_of("99.1.RC1", "aclnnAddGetWorkspaceSize") == "libopapi.so"


def test_a_catalog_with_a_base_holds_what_differs_and_takes_from_the_base_what_is_open(folder):
    arguments = ("--home", str(bundled_simulator()), "--version", "99.3.RC1", "--base", "2026-08")
    assert make(*arguments).return_value == exits.OK
    stored = json.loads((folder / "99.3.RC1.json").read_text())
    assert stored["base"] == "2026-08"
    assert "aclnnAdd" not in stored["functions"]
    alone, based = catalogs.load("2026-08"), catalogs.load("99.3.RC1")
    assert based.functions["aclnnAdd"] == alone.functions["aclnnAdd"]


def test_a_file_that_is_there_is_kept(folder):
    arguments = ("--headers", str(bundled_simulator() / "include"), "--version", "99.2")
    assert make(*arguments).return_value == exits.OK
    assert "--force" in str(make(*arguments).exception)
    assert make(*arguments, "--force").return_value == exits.OK


def test_a_version_that_is_no_release_is_refused(folder):
    result = make("--home", str(bundled_simulator()), "--version", "../x")
    assert "give a release" in str(result.exception)
    assert not folder.exists()


def test_a_shipped_name_in_the_user_s_folder_is_refused_with_both_places(folder):
    folder.mkdir(parents=True)
    (folder / "8.1.RC1.json").write_text('{\n"cann":"8.1"\n}')
    with pytest.raises(catalogs.CatalogError, match=r"8\.1\.RC1.*remove one"):
        catalogs.versions()


def test_a_file_that_is_no_catalog_is_named(folder):
    folder.mkdir(parents=True)
    (folder / "notes.json").write_text("{}")
    with pytest.raises(catalogs.CatalogError, match=r"notes\.json"):
        catalogs.versions()


def test_a_candidate_stands_before_its_release(folder):
    folder.mkdir(parents=True)
    for name in ("98.0.0", "98.0.RC1"):
        (folder / f"{name}.json").write_text(f'{{\n"cann":"{name}"\n}}')
    assert catalogs.versions()[-2:] == ("98.0.RC1", "98.0.0")
