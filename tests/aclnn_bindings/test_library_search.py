"""Where installs are looked for, in which order, and what is reported of each place."""

from pathlib import Path

import fake_cann
import pytest

from aclnn_bindings.install import library, search
from aclnn_bindings.install.library import InstallNotFoundError, choose


@pytest.fixture
def cann(tmp_path: Path) -> Path:
    """An install of empty files: finding looks at names only."""
    return make(tmp_path / "8.1.RC1")


def make(root: Path, headers: bool = True) -> Path:
    (root / "lib64").mkdir(parents=True)
    for name in ("libascendcl.so", "libnnopbase.so", "libopapi.so"):
        (root / "lib64" / name).touch()
    if headers:
        (root / "include" / "acl").mkdir(parents=True)
    return root


def look(
    environ: dict[str, str] | None = None, home: Path | None = None, *bases: Path
) -> list[search.Step]:
    return list(search.search(environ or {}, home, bases))


def found(steps: list[search.Step]) -> list[tuple[str, Path | None]]:
    return [(s.via, s.path) for s in steps if s.install and s.install.kind == "cann"]


@pytest.mark.parametrize("name", search.ENVIRONMENT)
def test_a_variable_names_an_install(cann: Path, name: str) -> None:
    assert found(look({name: str(cann)})) == [(name, cann)]


def test_the_argument_comes_before_variables_and_they_before_roots(tmp_path: Path) -> None:
    places = [make(tmp_path / name) for name in ("a", "b", "c", "d")]
    base = tmp_path / "base"
    make(base / "cann-9.0.0")
    environ = {
        "ASCEND_TOOLKIT_HOME": str(places[3]),
        "ASCEND_HOME_PATH": str(places[2]),
        "MINDTORCH_CANN_HOME": str(places[1]),
    }
    steps = found(look(environ, places[0], base))
    assert [via for via, _ in steps] == [
        "argument",
        "MINDTORCH_CANN_HOME",
        "ASCEND_HOME_PATH",
        "ASCEND_TOOLKIT_HOME",
        "default root",
    ]


def test_one_install_under_two_names_is_found_once(cann: Path) -> None:
    steps = look({"ASCEND_HOME_PATH": str(cann), "ASCEND_TOOLKIT_HOME": str(cann)})
    assert found(steps) == [("ASCEND_HOME_PATH", cann)]
    again = next(s for s in steps if s.via == "ASCEND_TOOLKIT_HOME")
    assert (again.verdict, again.detail) == ("duplicate", "the install of ASCEND_HOME_PATH")


def test_default_roots_are_latest_then_new_layout_then_versions_newest_first(
    tmp_path: Path,
) -> None:
    for name in ("ascend-toolkit/8.0.RC3", "ascend-toolkit/8.1.RC1", "cann-8.5.0", "cann-8.10.0"):
        make(tmp_path / name)
    (tmp_path / "ascend-toolkit/latest").symlink_to(tmp_path / "ascend-toolkit/8.1.RC1")
    (tmp_path / "cann").symlink_to(tmp_path / "cann-8.10.0")
    names = [
        path.relative_to(tmp_path).as_posix() for _, path in found(look({}, None, tmp_path)) if path
    ]
    assert names == ["ascend-toolkit/latest", "cann", "cann-8.5.0", "ascend-toolkit/8.0.RC3"]


def test_set_env_scripts_name_installs_that_no_variable_does(tmp_path: Path) -> None:
    elsewhere = make(tmp_path / "opt" / "8.1.RC1")
    script = tmp_path / "base" / "ascend-toolkit" / "set_env.sh"
    script.parent.mkdir(parents=True)
    script.write_text(f"# set up\nexport ASCEND_TOOLKIT_HOME={elsewhere}\nexport PATH=$PATH\n")
    assert found(look({}, None, tmp_path / "base")) == [(str(script), elsewhere)]


def test_a_library_path_leads_to_the_install_above(cann: Path) -> None:
    steps = look({"LD_LIBRARY_PATH": f"/nowhere:{cann / 'lib64'}"})
    assert found(steps) == [("LD_LIBRARY_PATH", cann)]


def test_a_bare_folder_of_libraries_is_an_install(tmp_path: Path) -> None:
    folder = tmp_path / "libs"
    folder.mkdir()
    (folder / "libascendcl.so").touch()
    assert found(look({"LD_LIBRARY_PATH": str(folder)})) == [("LD_LIBRARY_PATH", folder)]


def test_a_folder_above_the_root_is_understood(tmp_path: Path) -> None:
    make(tmp_path / "ascend-toolkit" / "latest")
    assert found(look({}, tmp_path)) == [("argument", tmp_path / "ascend-toolkit" / "latest")]


def test_every_place_says_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    verdicts = {
        name: look({"ASCEND_HOME_PATH": str(tmp_path / name)})[1].verdict
        for name in ("empty", "file", "missing")
    }
    assert verdicts == {"empty": "empty", "file": "absent", "missing": "absent"}
    assert look({"ASCEND_HOME_PATH": ""})[1].verdict == "unset"


def test_a_folder_that_may_not_be_read_is_reported(
    cann: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(search, "describe", refuse)
    step = look({}, cann)[0]
    assert (step.verdict, step.detail) == ("absent", f"{cann} cannot be read: Permission denied")


def test_a_link_that_leads_to_itself_is_absent(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert look({}, tmp_path / "loop")[0].verdict == "absent"


def test_empty_header_folders_count_as_no_headers(tmp_path: Path) -> None:
    root = make(tmp_path / "x")
    fake_cann.write_version(root, "8.1.RC1")
    declared = library.declarations(library.find_install(root, environ={}))
    assert len(declared.functions) == 2746


def test_headers_of_the_runtime_package_serve_when_links_are_missing(tmp_path: Path) -> None:
    root = make(tmp_path / "x", headers=False)
    (root / "runtime/include/acl").mkdir(parents=True)
    install = look({}, root)[0].install
    assert install is not None
    assert install.include_dirs == (root / "runtime/include",)


def test_the_arch_folder_and_the_operator_folder_are_searched(tmp_path: Path) -> None:
    root = tmp_path / "8.1.RC1"
    (root / "aarch64-linux/lib64").mkdir(parents=True)
    (root / "aarch64-linux/lib64/libascendcl.so").touch()
    api = root / "opp/built-in/op_impl/ai_core/tbe/op_api"
    (api / "lib/linux/aarch64").mkdir(parents=True)
    (api / "lib/linux/aarch64/libopapi.so").touch()
    (api / "include/aclnnop").mkdir(parents=True)
    install = look({}, root)[0].install
    assert install is not None
    assert [library.name for library in install.libraries] == ["libopapi.so", "libascendcl.so"]
    assert install.include_dirs == (api / "include",)


def test_split_libraries_come_in_the_order_of_nnopbase(tmp_path: Path) -> None:
    root = make(tmp_path / "cann-8.5.0")
    (root / "lib64/libopapi.so").unlink()
    for part in ("transformer", "legacy", "nn", "math", "cv", "zzz"):
        (root / f"lib64/libopapi_{part}.so").touch()
    install = look({}, root)[0].install
    assert install is not None
    assert install.layout == "split"
    names = [library.name.removeprefix("libopapi_") for library in install.libraries]
    assert names[:6] == ["math.so", "nn.so", "cv.so", "transformer.so", "legacy.so", "zzz.so"]


def test_single_before_legacy_because_both_export_the_same_names(cann: Path) -> None:
    (cann / "lib64/libaclnn_math.so").touch()
    install = look({}, cann)[0].install
    assert install is not None
    assert [lib.name for lib in install.libraries][:2] == ["libopapi.so", "libaclnn_math.so"]
    assert install.layout == "single"


def test_a_named_place_that_is_unusable_is_refused_not_skipped(tmp_path: Path) -> None:
    good = make(tmp_path / "cann-9.0.0")
    environ = {"ASCEND_HOME_PATH": str(tmp_path / "gone")}
    with pytest.raises(InstallNotFoundError, match=r"ASCEND_HOME_PATH=.*gone.* does not exist"):
        choose(search.search(environ, None, (good.parent,)))


def test_an_explicit_home_without_libraries_is_refused(tmp_path: Path) -> None:
    (tmp_path / "include" / "acl").mkdir(parents=True)
    with pytest.raises(InstallNotFoundError, match="has headers but no libraries"):
        library.find_install(tmp_path, environ={})


def test_find_install_takes_the_first_with_libraries(cann: Path, tmp_path: Path) -> None:
    (tmp_path / "cann-9.0.0" / "include" / "acl").mkdir(parents=True)
    steps = search.search({"LD_LIBRARY_PATH": str(cann / "lib64")}, None, (tmp_path,))
    assert choose(steps).root == cann


def test_nothing_anywhere_says_what_to_do() -> None:
    steps = tuple(s for s in search.search({}, None, ()) if s.install is None)
    with pytest.raises(InstallNotFoundError, match=r"set_env\.sh"):
        choose(steps)


def test_declarations_come_from_headers_else_from_the_catalog_of_the_version(
    tmp_path: Path,
) -> None:
    root = make(tmp_path / "x", headers=False)
    fake_cann.write_version(root, "8.1.RC1")
    install = library.find_install(root, environ={})
    assert len(library.declarations(install).functions) == 2746
    fake_cann.write_headers(root / "include")
    install = library.find_install(root, environ={})
    assert set(library.declarations(install).ops) == set(fake_cann.OPS)


def test_without_headers_or_a_known_version_declaring_is_refused(tmp_path: Path) -> None:
    root = make(tmp_path / "x", headers=False)
    fake_cann.write_version(root, "7.7.7")
    install = library.find_install(root, environ={})
    with pytest.raises(library.DeclarationsUnknownError, match=r"no catalog of version 7\.7\.7"):
        library.declarations(install)


def test_the_simulator_is_found_last_and_can_be_asked_for() -> None:
    if search.bundled_simulator() is None:
        pytest.skip("the simulator is not built in this tree")
    assert search.search({}, None, ())[-1].via == "bundled simulator"
    install = library.find_install(simulator=True, environ={"ASCEND_HOME_PATH": "/nowhere"})
    assert install.kind == "simulator"
    assert library.catalog_version(install) == "2026-08"
