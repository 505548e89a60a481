"""Nothing is dropped in silence: declarations and skipped rows account for all of the code."""

import re
from pathlib import Path

import header_generator
import pytest

from aclnn_bindings.interface import catalog
from aclnn_bindings.interface.headers.declaration import read_declarations
from aclnn_bindings.interface.headers.markers import Markers
from aclnn_bindings.interface.headers.preprocessor import predefined
from aclnn_bindings.interface.headers.raw import Unit
from aclnn_bindings.interface.headers.source import decode, read_source

_LINKAGE = re.compile(r'extern\s*"C"\s*\{')


def account(name: str, text: str) -> tuple[Unit, int]:
    """Reads one header and asserts that every piece of it has an outcome; gives the count."""
    unit = Unit(name)
    source = read_source(text, unit, predefined())
    before = len(unit.skipped)
    chunks = read_declarations(source, unit, Markers(unit.macros))
    left = list(chunks.code)
    for start, end in chunks.spans:
        assert set(left[start:end]) != {"\0"}, "two outcomes for one piece of code"
        left[start:end] = "\0" * (end - start)
    rest = _LINKAGE.sub("", "".join(left).replace("\0", ""))
    assert not rest.replace("}", "").replace(";", "").strip(), f"{name}: lost {rest.strip()[:80]!r}"
    outcomes = unit.declared() + len(unit.skipped) - before
    assert outcomes >= unit.chunks
    return unit, unit.chunks


MIXED = """
#ifndef GUARD
#define GUARD
#ifdef __cplusplus
extern "C" {
template <class T> T twice(T t);
#endif
typedef struct S { int a; struct { int b; } c; } S, *SP; int f(void), g(char);
;; enum E { A }; static inline int body(void) { return 0; }
namespace n { int hidden(); } broken broken broken; int h(int
);
#ifdef __cplusplus
}
#endif
#endif
int tail(
"""


def test_every_piece_of_a_mixed_header_has_one_outcome() -> None:
    unit, chunks = account("mixed.h", MIXED)
    assert chunks == 9
    assert [f.name for f in unit.functions] == ["f", "g", "h"]
    assert [s.line for s in unit.skipped] == [6, 9, 10, 10, 16]


@pytest.mark.parametrize("version", ["8.3.RC1", "2026-08"])
def test_generated_trees_are_accounted_for_to_the_last_declaration(version: str) -> None:
    known = catalog.load(version)
    planted = header_generator.generate(known)
    functions = skipped = 0
    seen: set[bytes] = set()
    for name, data in planted.files.items():
        if data not in seen:  # level2 holds copies
            seen.add(data)
            unit, _ = account(name, decode(data))
            functions += len(unit.functions)
            skipped += len(unit.skipped)
    assert functions == len(known.functions)
    assert skipped == planted.skipped


def test_code_left_open_before_a_linkage_block_is_not_lost() -> None:
    unit, _ = account("open.h", 'extern int f(int a,\nextern "C" {\nint g(void);\n}\n')
    assert [f.name for f in unit.functions] == ["g"]
    assert "not finished" in unit.skipped[0].reason


@pytest.mark.parametrize("cut", range(7))
def test_truncated_headers_are_accounted_for(cut: int) -> None:
    account("cut.h", MIXED[: len(MIXED) * cut // 7])


def test_each_source_line_of_the_simulator_headers_has_an_outcome() -> None:
    import aclnn_bindings

    roots = [Path(p) / "simulator/cann/include" for p in aclnn_bindings.__path__]
    headers = [h for root in roots for h in root.rglob("*.h")]
    if not headers:
        pytest.skip("the simulator is not built")
    for header in headers:
        account(str(header), decode(header.read_bytes()))
