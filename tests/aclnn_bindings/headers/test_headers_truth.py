"""A C++ compiler agrees with every size, value, offset and type that the parser found."""

import os
from pathlib import Path

import header_generator
import pytest
import truth

import aclnn_bindings
from aclnn_bindings.interface import catalog
from aclnn_bindings.interface.headers import parse_text, parse_tree

needs_compiler = pytest.mark.skipif(truth.COMPILER is None, reason="no C++ compiler on PATH")
SIMULATOR = [
    Path(p) / "simulator" / "cann" / "include"
    for p in aclnn_bindings.__path__
    if (Path(p) / "simulator" / "cann" / "include").is_dir()
]
# Folders with headers to check besides, separated as in PATH.
GIVEN = [Path(p) for p in os.environ.get("MINDTORCH_TRUTH_HEADERS", "").split(os.pathsep) if p]


def confirm(root: Path, build: Path) -> truth.Verdict:
    verdict = truth.ask(root, parse_tree([root]), build)
    assert not verdict.wrong, "\n".join(verdict.wrong[:20])
    return verdict


@needs_compiler
@pytest.mark.skipif(not SIMULATOR, reason="the simulator is not built")
def test_compiler_agrees_on_the_headers_of_the_simulator(tmp_path: Path) -> None:
    verdict = confirm(SIMULATOR[0], tmp_path)
    assert not verdict.not_compiled
    assert verdict.checked > 500


@needs_compiler
@pytest.mark.skipif(not GIVEN, reason="MINDTORCH_TRUTH_HEADERS names no folder")
@pytest.mark.parametrize("root", GIVEN, ids=str)
def test_compiler_agrees_on_the_headers_of_a_given_folder(root: Path, tmp_path: Path) -> None:
    assert confirm(root, tmp_path).checked > 0


@needs_compiler
def test_compiler_agrees_on_a_generated_tree(tmp_path: Path) -> None:
    known = catalog.load("8.1.RC1")
    files = header_generator.generate(known).files
    core = {n: d for n, d in files.items() if n == "acl/acl_base.h"}
    ops = {n: b'#include "acl/acl_base.h"\n' + d.removeprefix(b"\xef\xbb\xbf")
           for n, d in files.items() if n.startswith("aclnnop/aclnn_a")}  # fmt: skip
    header_generator.write({**core, **ops, "aclnn/aclnn_base.h": b""}, tmp_path / "include")
    verdict = confirm(tmp_path / "include", tmp_path)
    assert not verdict.not_compiled
    assert verdict.checked > 1000


@needs_compiler
def test_a_wrong_claim_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "include"
    header_generator.write({"a.h": b"enum E { A = 4 }; struct S { char c; long n; };"}, root)
    other = parse_text("enum E { A = 5 }; struct S { int c; char n; };", "a.h")
    verdict = truth.ask(root, other, tmp_path)
    assert any("A" in claim for claim in verdict.wrong)
    assert any("sizeof(S)" in claim for claim in verdict.wrong)


LAYOUTS = """
#include <stdint.h>
#include <limits.h>
#include <sys/ioctl.h>
#define LENGTH 3
typedef enum { SMALL = 1, BIG = 0x1FFFFFFFFLL } wide_t;
typedef enum { MINUS = -1, PLUS = 7 } signed_t;
struct Bits { uint32_t a : 3; uint32_t b : 30; uint8_t c : 4; uint8_t : 0; uint8_t d : 2; };
struct __attribute__((packed)) Packed { char c; uint64_t n; uint16_t m; };
struct Later { char c; uint32_t n; } __attribute__((packed));
#pragma pack(push, 2)
typedef struct { char c; uint64_t n; uint16_t m; } Pack2;
#pragma pack(pop)
typedef struct { char c; uint64_t n; } Natural;
typedef struct { char c; __attribute__((aligned(32))) int wide; } Aligned;
typedef struct { int x; } Whole __attribute__((aligned(64)));
typedef struct { union { int i; double d; }; struct { char p, q[LENGTH]; } in; int tail; } Nested;
typedef union { char c[5]; int32_t n; } U;
typedef struct Chain { struct Chain *next; U u[2][LENGTH + 1]; void (*call)(int, void *); } Chain;
typedef struct { const char *const *names; int (*t[4])(void); long double ld; bool flag; } Mixed;
typedef struct { uint16_t n; char text[]; } Flexible;
#define SHIFTED (1ULL << 40)
#define MASK (~0U)
#define NEGATIVE (-(3 + 4) * 2 % 5)
#define CHOICE (LENGTH > 2 ? 'a' : '\\n')
#define SIZES (sizeof(Pack2) + sizeof(int64_t) * 2)
#define CAST ((int32_t)0xFFFFFFFE)
#define HALF 0.5f
#define TEXT "one" " two"
#define LIMITS (INT_MAX - UINT8_MAX + (INT64_MIN < 0))
#define REQUEST _IOWR('A', 3, Natural)
#define PAIR(a, b) (((a) << 8) | (b))
#define PAIRED PAIR(LENGTH, 0x10)
int f(int a[LENGTH], int (*g)(int, char), void (*const h)(void), const U *const *u, ...);
const char *const *k(struct Bits *b, unsigned long long n, signed char c, long int l);
"""


@needs_compiler
def test_compiler_agrees_on_layouts_and_expressions(tmp_path: Path) -> None:
    root = tmp_path / "include"
    header_generator.write({"layouts.h": LAYOUTS.encode()}, root)
    verdict = confirm(root, tmp_path)
    assert not verdict.not_compiled
    assert verdict.checked > 70
    assert [s.text for s in parse_tree([root]).skipped] == ["#define PAIR(a, b)"]
