"""Damaged packages of custom operators: what `probe` says of each, and what to do."""

import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from aclnn_bindings import Cause
from aclnn_bindings.diagnose.causes import causes
from aclnn_bindings.diagnose.probe import Request, probe
from aclnn_bindings.install.vendors import VARIABLE
from tests import custom_packages
from tests.custom_packages import ADD, LIBRARY, Operator

MUL = Operator("MulCustom", ("x", "y"), ("out",), supports=(("FLOAT",) * 3,))
BUILT_IN = Operator("Add", ("x", "y"), ("out",), supports=(("FLOAT",) * 3,))
TBE = "op_impl/ai_core/tbe"
CONFIG = f"{TBE}/config/ascend910b/aic-ascend910b-ops-info.json"
KERNEL = f"{TBE}/kernel/ascend910b"

Environ = dict[str, str]
Damage = Callable[[Path, Environ], None]  # of the package at a path, and of the shell


def gone(place: str) -> Damage:
    def damage(package: Path, _environ: Environ) -> None:
        path = package / place
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    return damage


def says(place: str, text: str) -> Damage:
    return lambda package, _environ: (package / place).write_text(text) and None


def points(value: str) -> Damage:
    """The variable names this, with the package for `{package}` and its folder for `{folder}`."""

    def damage(package: Path, environ: Environ) -> None:
        environ[VARIABLE] = value.format(package=package, folder=package.parent)

    return damage


def emptied(place: str) -> Damage:
    def damage(package: Path, _environ: Environ) -> None:
        shutil.rmtree(package / place)
        (package / place).mkdir()

    return damage


def installed(config: str | None) -> Damage:
    """The package lies in `opp/vendors` instead, whose config.ini says `config`; None: no file."""

    def damage(package: Path, environ: Environ) -> None:
        del environ[VARIABLE]
        opp = package.parent.parent / "opp"
        (opp / "vendors").mkdir(parents=True)
        package.rename(opp / "vendors" / package.name)
        environ["ASCEND_OPP_PATH"] = str(opp)
        if config is not None:
            (opp / "vendors/config.ini").write_text(config)

    return damage


def beside(*ops: Operator) -> Damage:
    """A second package with these operators comes after it."""

    def damage(package: Path, environ: Environ) -> None:
        other = custom_packages.package(package.parent / "theirs", *ops)
        environ[VARIABLE] += f":{other}"

    return damage


def one_kernel(package: Path, _environ: Environ) -> None:
    (package / KERNEL / "add_custom").rename(package / KERNEL / "mul_custom")


def forgotten(package: Path, environ: Environ) -> None:
    del environ[VARIABLE]
    (package / "bin").mkdir()
    (package / "bin/set_env.bash").write_text("export ASCEND_CUSTOM_OPP_PATH=…\n")
    environ["LD_LIBRARY_PATH"] = str(package / "op_api/lib")


def undeclared(package: Path, _environ: Environ) -> None:
    shutil.copyfile(custom_packages.library(ADD, MUL), package / "op_api/lib" / LIBRARY)


def stale(package: Path, _environ: Environ) -> None:
    header = custom_packages.header(MUL)
    (package / "op_api/include/aclnn_mul_custom.h").write_text(header)


@dataclass(frozen=True)
class Row:
    defect: str
    damage: Damage
    what: str
    fix: str = ""
    severity: str = "warning"


ROWS = (
    Row("a typo in the path", points("{folder}/mnie"), "mnie does not exist", "did you mean"),
    Row("a typo above the package", points("{folder}s/mine"), "does not exist", "{package}"),
    Row("the folder above it", points("{folder}"),
        f"{LIBRARY} does not exist", f"{VARIABLE}={{package}}"),
    Row("no library", gone(f"op_api/lib/{LIBRARY}"),
        f"{LIBRARY} does not exist", "build the package"),
    Row("no header", emptied("op_api/include"),
        "there is no header below", "install the package's headers"),
    Row("another release", says("version.info", "custom_opp_compiler_version=7.0.0\n"),
        "built for CANN 7.0.0, this is", "with this toolkit"),
    Row("no op_impl", gone("op_impl"), "there is no op_impl", "561003"),
    Row("kernels not compiled", emptied(f"{TBE}/kernel"),
        "no compiled kernels below", "ENABLE_BINARY_PACKAGE"),
    Row("one kernel not compiled", one_kernel,
        "no compiled kernel of add_custom for ascend910b", "build"),
    Row("no list of kernels", gone(CONFIG), "ops-info.json is missing", "build the package again"),
    Row("a damaged list of kernels", says(CONFIG, "{"),
        "ops-info.json is no JSON", "build it again"),
    Row("no config.ini", installed(None),
        "config.ini does not exist: it is not used", "load_priority=mine"),
    Row("not in config.ini", installed("load_priority=other\n"),
        "not in load_priority", "load_priority=mine"),
    Row("config.ini without its line", installed("# nothing\n"),
        "has no load_priority", "load_priority=mine"),
    Row("listed twice", installed("load_priority=mine,mine\n"),
        "lists mine twice", "list each package once"),
    Row("two priorities", installed("load_priority=mine\nload_priority=theirs\n"),
        "2 lines of load_priority", "one line"),
    Row("named twice", points("{package}:{package}/op_api/lib"),
        "same file as mine", severity="note"),
    Row("an operator shadowed", beside(ADD),
        "come before those of theirs: aclnnAddCustom", "priority"),
    Row("set_env.bash forgotten", forgotten, "are not set up in this shell", "bin/set_env.bash"),
    Row("a header of another build", stale,
        "headers declare aclnnMulCustom, its library does not", "install the package again"),
    Row("a library of another build", undeclared,
        "no header declares aclnnMulCustom", "headers again"),
)  # fmt: skip


@pytest.fixture
def environ(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Environ:
    monkeypatch.chdir(tmp_path)
    private = ("ASCEND_", "ACLSIM_", "MINDTORCH_CANN")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(private)}
    return {**clean, "HOME": str(tmp_path / "home")}


def causes_in(environ: Environ, run: bool = False) -> list[Cause]:
    report = probe(Request(simulator=True, run=run), environ)
    return list(causes(report, environ))


def test_a_sound_package_has_nothing_to_be_said(environ: Environ, tmp_path: Path) -> None:
    environ[VARIABLE] = str(custom_packages.package(tmp_path / "vendors/mine", ADD))
    assert causes_in(environ) == []


@pytest.mark.parametrize("row", ROWS, ids=[row.defect for row in ROWS])
def test_each_defect_is_named_with_a_fix(row: Row, environ: Environ, tmp_path: Path) -> None:
    package = custom_packages.package(tmp_path / "vendors/mine", ADD)
    environ[VARIABLE] = str(package)
    row.damage(package, environ)
    problems = causes_in(environ)
    fitting = [cause for cause in problems if row.what in cause.what]
    assert len(fitting) == 1, problems
    assert row.fix.format(package=package) in fitting[0].fix
    assert fitting[0].severity == row.severity
    assert not any("simulator is damaged" in cause.fix for cause in problems)


def test_an_operator_that_replaces_canns_own_is_told(environ: Environ, tmp_path: Path) -> None:
    environ[VARIABLE] = str(custom_packages.package(tmp_path / "vendors/mine", BUILT_IN))
    problems = [cause for cause in causes_in(environ) if "CANN's own" in cause.what]
    assert [(cause.severity, cause.what) for cause in problems] == [
        ("note", "custom operators mine come before CANN's own: aclnnAdd")
    ]


UNRESOLVED = (
    'extern "C" int NobodyHasThis(int);\n'
    'extern "C" __attribute__((visibility("default"))) int uses_it() { return NobodyHasThis(1); }\n'
)
CLASSES = (
    "namespace l0op { const void *Add(const void *); }\n"
    'extern "C" __attribute__((visibility("default"))) const void *uses_it() {\n'
    "  return l0op::Add(nullptr);\n}\n"
)


def test_libraries_that_lack_a_symbol_are_not_called(environ: Environ, tmp_path: Path) -> None:
    folder = tmp_path / "vendors"
    packages = [
        custom_packages.package(folder / "lacking", ADD, extra=UNRESOLVED),
        custom_packages.package(folder / "unlinked", MUL, linked=False),
        custom_packages.package(folder / "classes", extra=CLASSES),
        custom_packages.package(folder / "elsewhere", BUILT_IN, soc="ascend310p"),
    ]
    environ[VARIABLE] = ":".join(map(str, packages))
    report = probe(Request(simulator=True), environ)
    assert report.census is not None
    assert not report.census.ops["aclnnAddCustom"].callable
    assert not report.census.ops["aclnnMulCustom"].callable
    assert report.census.ops["aclnnAdd"].callable
    problems = {
        cause.what: cause.fix for cause in causes(report, environ) if cause.severity == "error"
    }
    lacking = "custom operators lacking: NobodyHasThis is called and no library that it names"
    assert any(what.startswith(lacking) for what in problems)
    unlinked = [
        fix for what, fix in problems.items() if re.search(r"unlinked: (Nnopbase|acl)\w+", what)
    ]
    assert unlinked == ["link the package with libnnopbase.so"]
    assert any("classes: written against C++ classes of CANN" in what for what in problems)
    product = "elsewhere: its kernels are for ascend310p, this device is an Ascend910B2"
    assert any(product in what for what in problems)
