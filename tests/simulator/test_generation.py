"""The generator finds rows and runtime functions, and refuses what does not fit the catalog."""

from pathlib import Path

import pytest

import aclnn_bindings
from aclnn_bindings.simulator.generation import catalog as catalogs, entries, rows, stubs
from aclnn_bindings.simulator.generation.headers import Headers

CATALOG = catalogs.load(Path(aclnn_bindings.__file__).parent / "catalogs")


def source(folder: Path, text: str, name: str = "ops.cpp") -> list[Path]:
    path = folder / name
    path.write_text(text)
    return [*sorted(folder.glob("*.cpp"))]


def test_rows_are_found_in_family_macros_over_several_lines(tmp_path: Path) -> None:
    text = """
#define ACLNN_UNARY(op, fn) ACLNN_OP(op, check, run<fn>)
// ACLNN_UNARY(aclnnSin, Sin)
ACLNN_UNARY(aclnnExp, Exp)
ACLNN_PAIR(aclnnAbs,
           aclnnCeil, run<f(1), g>)
  ACLNN_INDENTED(aclnnCos)
"""
    found = rows.find_ops(source(tmp_path, text), CATALOG)
    assert found == ["aclnnAbs", "aclnnCeil", "aclnnExp"]


def test_a_row_that_stands_twice_is_refused_with_both_places(tmp_path: Path) -> None:
    source(tmp_path, "ACLNN_OP(aclnnExp, a, b)\n", "one.cpp")
    files = source(tmp_path, "ACLNN_OP(aclnnExp, a, b)\n", "two.cpp")
    with pytest.raises(ValueError, match=r"aclnnExp: rows in one\.cpp and two\.cpp"):
        rows.find_ops(files, CATALOG)


def test_a_row_that_the_catalog_does_not_know_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="aclnnNoSuchOp is not an operator of the catalog"):
        rows.find_ops(source(tmp_path, "ACLNN_OP(aclnnNoSuchOp, a, b)\n"), CATALOG)


def test_runtime_functions_are_found_by_their_mark(tmp_path: Path) -> None:
    text = "ACLSIM_API aclError aclrtFree(void* p) {}\nACLSIM_API\nconst char* aclName() {}\n"
    assert set(rows.find_functions(source(tmp_path, text))) == {"aclrtFree", "aclName"}


def test_what_has_no_row_is_declared_nowhere(tmp_path: Path) -> None:
    exported = stubs.exported(CATALOG, "ascendcl")
    written = Headers(CATALOG, exported, ["aclnnAdd"]).write(tmp_path, frozenset())
    assert [h for h in written if h.startswith("aclnnop/")] == ["aclnnop/aclnn_add.h"]
    text = (tmp_path / "aclnnop" / "aclnn_add.h").read_text()
    assert "aclnnAdd(" in text
    assert "aclnnInplaceAdd(" not in text


def test_a_header_whose_last_row_goes_is_removed(tmp_path: Path) -> None:
    exported = stubs.exported(CATALOG, "ascendcl")
    Headers(CATALOG, exported, ["aclnnAdd", "aclnnExp"]).write(tmp_path, frozenset())
    Headers(CATALOG, exported, ["aclnnAdd"]).write(tmp_path, frozenset())
    assert [p.name for p in (tmp_path / "aclnnop").iterdir()] == ["aclnn_add.h"]


def test_functions_that_are_not_simulated_refuse_and_say_so_in_the_header(tmp_path: Path) -> None:
    text = stubs.refusals(CATALOG, "ascendcl", frozenset({"aclrtMalloc"}))
    assert 'aclError aclrtFree(void *) { return aclsim::refuse("aclrtFree"); }' in text
    assert "aclrtMalloc(" not in text
    exported = stubs.exported(CATALOG, "ascendcl")
    Headers(CATALOG, exported, []).write(tmp_path, frozenset({"aclrtMalloc"}))
    header = (tmp_path / "acl" / "acl_rt.h").read_text()
    before = header[: header.index("aclrtFree(")]
    assert "Not simulated" in before.splitlines()[-2]


def test_nulls_and_dtypes_of_the_documents_reach_the_rule_table() -> None:
    text = entries.entry_points(CATALOG, ["aclnnAdd"])
    rule = next(
        line for line in text.splitlines() if line.startswith("const ParamSpec params_aclnnAdd")
    )
    assert '{"self", ArgKind::Tensor, false, true, -1, 8, ' in rule
    assert '{"out", ArgKind::Tensor, true, true, -1, 8, ' in rule
    assert "const SocRule rules_aclnnAdd" in text
