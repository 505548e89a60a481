"""PRESENT, MISSING, UNDECLARED, DRIFTED: what libraries export against what headers declare."""

from pathlib import Path

from aclnn_bindings.diagnose.census import Census, Status, restrict, take
from aclnn_bindings.install.describe import LibraryFile, arch
from aclnn_bindings.install.elf import Elf
from aclnn_bindings.interface.signature import Declarations, Kind, Param, Signature

OPAPI, MATH = Path("/x/libopapi.so"), Path("/x/libaclnn_math.so")


def declare(*names: str, ctype: str = "int32_t", exported: bool = True) -> Declarations:
    params = (Param("n", ctype, Kind.INT32),)
    rows = {n: Signature(n, "aclnnStatus", params, "h.h", 1, exported) for n in names}
    return Declarations(functions=rows)


def library(
    path: Path, *exports: str, machine: str = "", problem: str = ""
) -> tuple[LibraryFile, Elf]:
    table = Elf(
        path, 1, machine or arch(), exports=frozenset(exports), problem=problem, fatal=bool(problem)
    )
    return LibraryFile(path, "opapi"), table


def count(
    *libraries: tuple[LibraryFile, Elf],
    declared: Declarations | None = None,
    reference: Declarations | None = None,
) -> Census:
    return take(libraries, declared, reference)


PAIR = ("aclnnAdd", "aclnnAddGetWorkspaceSize")


def test_declared_and_exported_is_present_with_its_library() -> None:
    row = count(library(OPAPI, *PAIR), declared=declare(*PAIR)).functions["aclnnAdd"]
    assert (row.status, row.library, row.header) == (Status.PRESENT, str(OPAPI), "h.h")


def test_declared_only_is_missing() -> None:
    row = count(library(OPAPI, PAIR[0]), declared=declare(*PAIR)).functions[PAIR[1]]
    assert (row.status, row.library) == (Status.MISSING, "")


def test_exported_only_is_undeclared_when_its_name_is_public() -> None:
    found = count(library(OPAPI, "aclnnNew", "_Z3foov", "memcpy"), declared=declare())
    assert {n: f.status for n, f in found.functions.items()} == {"aclnnNew": Status.UNDECLARED}


def test_a_function_defined_in_its_header_is_not_missing() -> None:
    assert count(declared=declare("HcclInit", exported=False)).functions == {}


def test_a_header_that_differs_from_the_catalog_has_drifted() -> None:
    found = count(
        library(OPAPI, *PAIR), declared=declare(*PAIR, ctype="int64_t"), reference=declare(*PAIR)
    )
    row = found.functions["aclnnAdd"]
    assert row.status is Status.DRIFTED
    assert row.drift is not None
    assert row.drift.detail == "n: int32_t -> int64_t"
    assert "differs from this version's catalog" in found.ops["aclnnAdd"].reason
    assert not found.ops["aclnnAdd"].callable


def test_the_first_library_wins_and_shadows_the_rest() -> None:
    found = count(library(OPAPI, *PAIR), library(MATH, *PAIR), declared=declare(*PAIR))
    row = found.functions["aclnnAdd"]
    assert (row.library, row.shadowed) == (str(OPAPI), (str(MATH),))


def test_an_operator_needs_both_phases_declared_and_exported() -> None:
    assert count(library(OPAPI, *PAIR), declared=declare(*PAIR)).ops["aclnnAdd"].callable
    half = count(library(OPAPI, PAIR[0]), declared=declare(*PAIR)).ops["aclnnAdd"]
    assert (half.installed, half.declared, half.callable) == (False, True, False)
    assert half.reason == "aclnnAddGetWorkspaceSize not exported"
    unknown = count(library(OPAPI, *PAIR), declared=declare()).ops["aclnnAdd"]
    assert (unknown.installed, unknown.declared, unknown.callable) == (True, False, False)
    assert "its signature is unknown" in unknown.reason


def test_phases_from_two_libraries_are_not_callable_together() -> None:
    found = count(library(OPAPI, PAIR[0]), library(MATH, PAIR[1]), declared=declare(*PAIR))
    assert "phases in two libraries" in found.ops["aclnnAdd"].reason


def test_operators_of_an_unusable_library_are_not_callable() -> None:
    other = "aarch64" if arch() != "aarch64" else "x86_64"
    foreign = count(library(OPAPI, *PAIR, machine=other), declared=declare(*PAIR)).ops["aclnnAdd"]
    assert not foreign.callable
    assert f"is built for {other}" in foreign.reason


def test_operators_of_a_library_that_does_not_load_are_not_callable() -> None:
    found = count(library(OPAPI, *PAIR), declared=declare(*PAIR))
    after = restrict(found, {str(OPAPI): "does not load: libx.so missing"}).ops["aclnnAdd"]
    assert not after.callable
    assert after.reason == "libopapi.so does not load: libx.so missing"


def test_nothing_declared_still_lists_what_is_exported() -> None:
    found = count(library(OPAPI, *PAIR))
    assert found.count(Status.UNDECLARED) == 2
    assert found.ops["aclnnAdd"].installed
