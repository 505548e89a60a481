"""Bad input gives rows or a result: never a hang, a crash or a deep recursion."""

import os
import random
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from aclnn_bindings.interface.headers import parse_text, parse_tree
from aclnn_bindings.interface.signature import Declarations

MEGABYTE = 1024 * 1024
LINE = {
    "statements": "int f(int a); ",
    "parameters": "int a, ",
    "open braces": "{",
    "close braces": "}",
    "open brackets": "(",
    "structs": "struct A {",
    "words": "struct a ",
    "enum members": "A,",
    "quotes": '"',
    "escaped quotes": '\\"',
    "apostrophes": "'",
    "comment starts": "/*",
    "slashes": "/",
    "stars": "*",
    "hashes": "#",
    "attributes": "__attribute__((a)) ",
    "linkage": 'extern "C" {',
    "digits": "9",
    "backslashes": "\\",
    "semicolons": ";",
    "zero bytes": "\0",
    "closed structs": "struct A { int n; } ",
    "initializers": "= {1} ",
    "spaces": " ",
}


@pytest.mark.parametrize("megabytes", [1, pytest.param(10, marks=pytest.mark.slow)])
@pytest.mark.parametrize("piece", LINE)
def test_megabytes_on_one_line_end_in_rows(piece: str, megabytes: int) -> None:
    text = LINE[piece] * (megabytes * MEGABYTE // len(LINE[piece]))
    found = parse_text(f"int before(void);\n{text}\n")
    assert "before" in found.functions
    read = {"statements", "semicolons", "spaces", "slashes"}
    assert bool(list(found.skipped)) == (piece not in read)


NESTED = {
    "brackets": "int f(int {}a{});".format("(" * 5000, ")" * 5000),
    "pointers to functions": "int {}f{};".format("(*" * 3000, ")(void)" * 3000),
    "arrays": "int f(int a{});".format("[2]" * 5000),
    "pointers": "int f(int {}a);".format("*" * 5000),
    "structs": "{}int a;{}".format("struct {" * 3000, "} x;" * 3000),
    "expression": "enum {{ A = {}1{} }};".format("(" * 5000, ")" * 5000),
    "unary": "#define A {}1".format("-" * 5000),
    "ternary": "#define A {}1{}".format("1 ? " * 2000, " : 2" * 2000),
    "casts": "#define A {}1".format("(int)" * 3000),
    "sum": "#define A 1{}".format(" + 1" * 5000),
    "conditionals": "#if 1\n" * 3000 + "int f(void);\n" + "#endif\n" * 3000,
    "inactive": "#if 0\n" + "int f(void);\n" * 100_000 + "#endif\n",
    "inactive braces": "#if 0\n" + "{" * 1_000_000 + "\n#endif\n",
    "conditions": "#if " + "defined(A) || " * 3000 + "1\nint f(void);\n#endif\n",
    "macros": "".join(f"#define M{n} M{n + 1}\n" for n in range(3000)) + "enum { A = M0 };",
    "macro calls": "#define F(x) F2(x) + F2(x)\n#define F2(x) F(x)\nenum { A = F(F(F(1))) };",
    "doubling macros": "#define D0(x) x\n"
    + "".join(f"#define D{n}(x) D{n - 1}(x) + D{n - 1}(x)\n" for n in range(1, 40))
    + "enum { A = D39(1) };",
    "type macros": "#define T0 T1 *\n#define T1 T0 *\nT0 f(T1 a);",
    "typedef circle": "typedef B A; typedef A B; int f(A a); struct S { A a; };",
    "struct circle": "struct A { struct B b; }; struct B { struct A a; };",
    "own size": "struct A { char c[sizeof(struct A)]; };",
    "own value": "enum { A = B, B = A }; \n#define C C\nint f(int a[C]);",
    "big array": "struct A { char c[0x7fffffffffffffff][0x7fffffff]; };",
    "negative array": "struct A { char c[-4]; };",
    "bit-field of nothing": "struct A { char c[0] : 3; }; struct B { struct A a : 1 / 0; };",
    "division by zero": "#define A 1 / 0\n#define B 1 % 0\nenum { C = 1 << 99 };",
    "long number": "#define A " + "9" * 100_000 + "\n#define B 0x" + "f" * 100_000,
    "long name": f"int {'f' * 1_000_000}(void);",
    "many parameters": f"int f({', '.join('int a' for _ in range(20_000))});",
    "template": "template <" * 5000 + "int f(void);",
    "long enum": "enum { " + ", ".join(f"A{n}" for n in range(20_000)) + " };",
    "enum of enum": "enum E { " + ", ".join(f"A{n} = A{n + 1}" for n in range(2000)) + " };",
}


@pytest.mark.parametrize("name", NESTED)
def test_deep_and_circular_input_ends(name: str) -> None:
    found = parse_text(NESTED[name] + "\nint after(char c);")
    read_all(found)
    assert "after" in found.functions or list(found.skipped)


def read_all(found: Declarations) -> None:
    """Decodes every row, since decoding is done late."""
    for table in (found.functions, found.enums, found.constants, found.typedefs, found.structs):
        for name in table:
            assert table[name] is not None
    for op in found.ops.values():
        assert isinstance(op.irregular, tuple)
    assert all(s.reason for s in found.skipped)


def test_binary_junk_gives_rows() -> None:
    junk = random.Random(1).randbytes(200_000)
    found = parse_text(junk)
    read_all(found)
    assert list(found.skipped)


def test_half_a_header_gives_its_first_half() -> None:
    text = "".join(f"aclnnStatus f{n}(const aclTensor *self, aclTensor *out);\n" for n in range(50))
    found = parse_text(text[: len(text) // 2])
    assert 20 <= len(found.functions) <= 25
    assert "not finished" in found.skipped[-1].reason


def test_comment_string_and_conditional_left_open_are_named() -> None:
    found = parse_text("int f(void);\n#if 1\nint g(void);\n/* int h(void);")
    assert set(found.functions) == {"f", "g"}
    assert [(s.line, s.reason.split(" is")[0]) for s in found.skipped] == [
        (2, "conditional"), (4, "comment"),
    ]  # fmt: skip


def test_unreadable_file_and_broken_link_are_rows(tmp_path: Path) -> None:
    (tmp_path / "gone.h").symlink_to(tmp_path / "nowhere.h")
    (tmp_path / "folder.h").mkdir()
    (tmp_path / "good.h").write_text("int f(void);")
    found = parse_tree([tmp_path])
    assert "f" in found.functions
    assert {s.header for s in found.skipped} == {"gone.h", "folder.h"}
    reasons = {s.header: s.reason for s in found.skipped}
    assert "cannot be read" in reasons["gone.h"]
    assert reasons["folder.h"] == "no regular file"


def test_folders_linked_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "f.h").write_text("int f(void);")
    (tmp_path / "a" / "again").symlink_to(tmp_path, target_is_directory=True)
    assert list(parse_tree([tmp_path]).sources) == ["a/f.h"]


def test_missing_folder_gives_nothing(tmp_path: Path) -> None:
    assert not parse_tree([tmp_path / "missing"]).functions


def test_names_that_are_not_utf8_are_read(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff\xfe.h"
    try:
        with open(path, "wb") as stream:
            stream.write(b"int f(void);")
    except OSError:
        pytest.skip("the file system refuses such names")
    assert "f" in parse_tree([tmp_path]).functions


TEXT = """
int char const struct union enum typedef static extern unsigned void aclTensor aclnnStatus f g A B
1 0x2 ( ) { } [ ] ; , * & = ... + - << ~ ? : "s" 'c' sizeof #define #if #ifdef #else #endif #undef
#include __cplusplus defined /* */ // \\ template namespace :: < > __attribute__((packed)) operator
ACLNN_API GetWorkspaceSize
"""
WORDS = st.sampled_from([*TEXT.split(), "\n"])


@settings(max_examples=400, deadline=None)
@given(st.lists(WORDS, max_size=60))
def test_any_sequence_of_words_is_read_or_reported(words: list[str]) -> None:
    read_all(parse_text(" ".join(words)))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_reported(data: bytes) -> None:
    read_all(parse_text(data))


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_a_function_is_found_behind_any_closed_comment(text: str) -> None:
    comment = "/*" + text.replace("*/", "").rstrip("*") + " */"
    assert "f" in parse_text(f"{comment} int f(void);").functions


TYPES = st.sampled_from(["int64_t", "const aclTensor *", "aclTensorList *", "double", "bool"])
NAMES = st.from_regex(r"[a-z][A-Za-z0-9]{0,8}", fullmatch=True).filter(
    lambda n: n not in {"int", "char", "bool", "const", "void", "long", "short", "float", "enum",
                        "union", "struct", "double", "signed", "static", "extern", "auto", "asm",
                        "inline", "typedef", "class", "using", "mutable", "virtual", "private",
                        "public", "friend", "alignas", "concept", "template", "operator",
                        "register", "restrict", "unsigned", "volatile", "typename", "decltype",
                        "explicit", "noexcept", "requires", "protected", "namespace"}
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(TYPES, NAMES), min_size=1, max_size=50),
    st.sampled_from(["", " ", "\n  ", "/* , */", " // )\n"]),
)
def test_any_parameter_list_comes_back_as_it_was_written(
    params: list[tuple[str, str]], between: str
) -> None:
    shown = f",{between}".join(f"{ctype} {name}" for ctype, name in params)
    found = parse_text(f"ACLNN_API aclnnStatus aclnnF({between}{shown}{between});")
    assert [(p.type, p.name) for p in found.functions["aclnnF"].params] == params
    assert not found.skipped
