"""Every trap of real headers, one test each; sources: counts of CANN 8.1.RC1 and newer trees."""

import pytest

from aclnn_bindings.interface.headers import parse_text
from aclnn_bindings.interface.headers.tables import declarations
from aclnn_bindings.interface.headers.tree import build
from aclnn_bindings.interface.signature import Declarations, Direction, Kind


def parse_files(**files: str) -> Declarations:
    return declarations(build({f"{name}.h": text for name, text in files.items()}))


def prototype(text: str, name: str = "f") -> str:
    found = parse_text(text)
    assert not found.skipped, found.skipped[0]
    return found.functions[name].prototype


@pytest.mark.parametrize(
    "mark",
    [
        "ACLNN_API ",
        '__attribute__((visibility("default")))\n',
        "ACL_FUNC_VISIBILITY ",
        "",
        "MSVP_PROF_API ",
        'ACL_DEPRECATED_MESSAGE("use g(int); instead") ACL_FUNC_VISIBILITY ',
        "extern ",
        'extern "C" ',
        "__declspec(dllexport) ",
        "[[deprecated]] ",
        "UNKNOWN_MARK(1, (2)) OTHER_MARK ",
    ],
)
def test_function_is_found_under_any_visibility_marker(mark: str) -> None:
    assert prototype(f"{mark}aclError f(int32_t n, void **p);") == "aclError (int32_t, void **)"


@pytest.mark.parametrize("tail", ["HCOMM_WEAK_SYMBOL", "__attribute__((weak))", "WEAK(1)", ""])
def test_attributes_may_stand_behind_the_parameters(tail: str) -> None:
    assert prototype(f"HcclResult f(HcclComm comm) {tail};", "f") == "HcclResult (HcclComm)"


def test_macro_of_a_macro_is_an_attribute_where_it_expands_to_one() -> None:
    text = (
        '#define VISIBLE __attribute__((visibility("default")))\n#define API VISIBLE\n'
        "#define EMPTY\nint API EMPTY f(int n) EMPTY;\nAPI int EMPTY g(void);\n"
    )
    found = parse_text(text)
    assert found.functions["f"].prototype == "int (int)"
    assert found.functions["g"].prototype == "int (void)"
    assert not found.skipped


def test_marker_defined_in_another_header_is_known_by_its_expansion() -> None:
    found = parse_files(
        base="#if defined(_MSC_VER)\n#define API __declspec(dllimport)\n#elif defined(__GNUC__)\n"
        '#define API __attribute__((visibility("default")))\n#endif\n',
        user='#include "base.h"\nint API f(void);\nstruct API S { int n; };\n',
    )
    assert found.functions["f"].returns == "int"
    assert found.structs["S"].size == 4


def test_macro_that_names_a_type_is_replaced_and_kept_as_a_typedef() -> None:
    found = parse_text(
        "#define hi_void void\n#define U32 unsigned int\nhi_void f(U32 n, hi_void *p);"
    )
    assert found.functions["f"].prototype == "void (unsigned int, void *)"
    assert found.typedefs["hi_void"] == "void"


def test_deprecation_is_noted_in_functions_and_passed_over_in_enums_and_unions() -> None:
    found = parse_text(
        "#define OLD(m) __attribute__((deprecated(m)))\n"
        'enum E { A OLD("a, b") = 2, B OLD("gone"), C = B + 1, };\n'
        'union U { int n; OLD("x;") float f; double d OLD("y}"); };\n'
        'OLD("z") int f(void);\n/** @deprecated since 8 */ int g(void);\nint h(void);\n'
    )
    assert dict(found.enums["E"]) == {"A": 2, "B": 3, "C": 4}
    assert [f.name for f in found.structs["U"].fields] == ["n", "f", "d"]
    assert [found.functions[n].deprecated for n in "fgh"] == [True, True, False]
    assert not found.skipped


def test_constants_in_all_spellings_have_their_values() -> None:
    found = parse_text(
        "static const int32_t ACL_A = 100000;\nconst uint32_t B = 145000U;\n#define C 161001\n"
        "constexpr aclnnStatus D = 0;\nenum { E = 7, F };\n#define G (1 << 4) | 0x3\n"
        'static const char *const H = "text";\n#define I "a" "b"\n#define J 1.5\n'
        "#define K 0xFFFFFFFFFFFFFFFEULL\nstatic constexpr uint64_t L = UINT8_C_MISSING;\n"
    )
    assert {n: found.constants[n] for n in "ABCDEFGHIJK" if n in found.constants} == {
        "B": 145000, "C": 161001, "D": 0, "E": 7, "F": 8, "G": 19, "H": "text", "I": "ab",
        "J": 1.5, "K": 0xFFFFFFFFFFFFFFFE,
    }  # fmt: skip
    assert found.constants["ACL_A"] == 100000
    assert [s.line for s in found.skipped] == [11]


def test_error_codes_come_from_the_header_and_not_from_us() -> None:
    found = parse_text("static const int ACL_ERROR_INVALID_PARAM = 999;\n")
    assert found.constant("ACL_ERROR_INVALID_PARAM") == 999


def test_enum_values_may_use_other_members_macros_and_headers() -> None:
    found = parse_files(
        a="#define BASE 0x10\nenum First { ONE = BASE, TWO, THREE = (TWO << 2) | 1 };\n",
        b='#include "a.h"\ntypedef enum { X = THREE, Y = sizeof(int64_t), Z = -1, W } Second;\n',
    )
    assert dict(found.enums["First"]) == {"ONE": 16, "TWO": 17, "THREE": 69}
    assert dict(found.enums["Second"]) == {"X": 69, "Y": 8, "Z": -1, "W": 0}


def test_member_without_a_known_value_is_reported_with_its_enum() -> None:
    found = parse_text("enum E { A = MISSING, B };\nint f(enum E e);")
    assert "MISSING" in found.skipped[0].reason
    assert found.functions["f"].params[0].kind is Kind.ENUM


def test_byte_order_mark_and_crlf_are_passed_over() -> None:
    data = b"\xef\xbb\xbf#define N \\\r\n 3\r\nint f(\r\n  int a); // end\r\nint g(void);\r\n"
    found = parse_text(data)
    assert found.constants["N"] == 3
    assert [found.functions[n].line for n in "fg"] == [3, 5]


def test_comments_inside_parameter_lists_and_with_code_in_them_are_passed_over() -> None:
    text = "int f(int a, /* in; { \" */ int b, // it's (b)\n char c /* last */);/* } */int g(void);"
    found = parse_text(text)
    assert [p.name for p in found.functions["f"].params] == ["a", "b", "c"]
    assert found.functions["g"].params == ()
    assert not found.skipped


def test_lines_are_true_behind_comments_directives_and_continuations() -> None:
    text = "/* 1\n2 */\n#define X(a) \\\n  a\n\nint f(void); /* 6\n7 */ int g(int\nn);\n"
    found = parse_text(text)
    assert [(n, found.functions[n].line) for n in "fg"] == [("f", 6), ("g", 7)]


def test_line_of_a_function_is_that_of_its_name() -> None:
    found = parse_text(
        '__attribute__((visibility("default")))\naclnnStatus f(\n int a);\n'
        'OLD("f(\\n")\nAPI\naclError\n  g(void (*h)(int), int f);\nconst char *\nk(void);\n'
    )
    assert [found.functions[n].line for n in "fgk"] == [2, 7, 9]


def test_line_continuation_inside_a_declaration_is_a_space() -> None:
    assert prototype("int f(int a, \\\n int b);") == "int (int, int)"


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("const aclTensor* x", "const aclTensor *"),
        ("aclTensor const * x", "const aclTensor *"),
        ("const aclTensor *const *x", "const aclTensor *const *"),
        ("aclTensor const*const* x", "const aclTensor *const *"),
        ("unsigned x", "unsigned int"),
        ("long unsigned int long x", "unsigned long long"),
        ("char signed x", "signed char"),
        ("short int x", "short"),
        ("struct S *x", "struct S *"),
        ("enum E x", "enum E"),
        ("const aclTensorDesc *const x[]", "const aclTensorDesc *const[]"),
        ("int64_t (*x)[2]", "int64_t (*)[2]"),
        ("int x[3][4]", "int[3][4]"),
        ("int (*x)(int, char *)", "int (*)(int, char *)"),
        ("int32_t (*const x)(const acldumpChunk *, int32_t)",
         "int32_t (*const)(const acldumpChunk *, int32_t)"),
        ("void *(*x)(void)", "void *(*)(void)"),
        ("int (*(*x)(int))[2]", "int (*(*)(int))[2]"),
        ("int x(char c)", "int (*)(char)"),
        ("char *__restrict x", "char *"),
        ("volatile int *x", "volatile int *"),
        ("bool x", "bool"),
        ("_Bool x", "bool"),
        ("void *const x", "void *const"),
    ],
)  # fmt: skip
def test_parameter_has_one_canonical_type(written: str, canonical: str) -> None:
    found = parse_text(f"void f({written}, ...);")
    first, rest = found.functions["f"].params
    assert (first.type, first.name) == (canonical, "x")
    assert rest.kind is Kind.VARARGS


@pytest.mark.parametrize("written", ["const aclTensor*", "int64_t[]", "int (*)(int)", "unsigned"])
def test_parameters_may_have_no_names(written: str) -> None:
    found = parse_text(f"int f({written}, {written});")
    assert [p.name for p in found.functions["f"].params] == ["", ""]


def test_array_bounds_may_be_macros_of_another_header() -> None:
    found = parse_files(
        a="#define RANGE_NUM (1 + 1)\n", b="int f(int64_t range[][RANGE_NUM], char id[RANGE_NUM]);"
    )
    assert [p.type for p in found.functions["f"].params] == ["int64_t[][2]", "char[2]"]


def test_reference_is_a_pointer_to_the_abi() -> None:
    found = parse_text("int f(uint64_t& size, const aclTensor *&made);")
    size, made = found.functions["f"].params
    assert (size.type, size.kind, size.direction) == ("uint64_t &", Kind.POINTER, Direction.OUT)
    assert made.kind is Kind.POINTER
    assert not found.skipped


def test_void_and_empty_parameter_lists_are_the_same() -> None:
    found = parse_text("typedef void hi_void;\nint f(void);\nint g();\nint h(hi_void);")
    assert [found.functions[n].params for n in "fgh"] == [(), (), ()]


def test_headers_with_one_guard_are_read_alone() -> None:
    guard = "#ifndef OP_API_INC_ADD_H_\n#define OP_API_INC_ADD_H_\n{}\n#endif\n"
    found = parse_files(a=guard.format("int f(void);"), b=guard.format("int g(void);"))
    assert set(found.functions) == {"f", "g"}


def test_one_enum_name_with_two_meanings_keeps_the_first_and_reports_the_second() -> None:
    found = parse_files(a="enum Reduction { NONE };", b="\nenum Reduction { NONE, MEAN = 4 };")
    assert dict(found.enums["Reduction"]) == {"NONE": 0}
    assert [(s.header, s.line) for s in found.skipped] == [("b.h", 2)]


def test_repeated_declarations_fold_and_different_ones_are_reported() -> None:
    found = parse_files(a="int f(int a);\nint f(int b);", b="int f(int);", c="int f(long);")
    assert found.functions["f"].header == "a.h"
    assert [(s.header, s.reason) for s in found.skipped] == [("c.h", "another type than at a.h:1")]


def test_conditionals_follow_a_c_compiler_under_linux() -> None:
    found = parse_text(
        "#if defined(__GNUC__) && !defined(_WIN32) && (__GNUC__ >= 5)\nint yes(void);\n#else\n"
        "int no(void);\n#endif\n#ifdef __cplusplus\nint cxx(int n = 1);\n#endif\n#if 0\n"
        "int never(void);\n#elif defined UNKNOWN || 1\nint elif_(void);\n#endif\n"
        '#if __cplusplus\nextern "C" {\n#endif\nint inside(void);\n#if __cplusplus\n}\n#endif\n'
    )
    assert set(found.functions) == {"yes", "elif_", "inside"}
    rows = {(s.line, s.text.split("(")[0], s.reason.split(":")[0]) for s in found.skipped}
    assert rows == {
        (4, "int no", "not active"), (7, "int cxx", "C++ only"), (10, "int never", "not active"),
    }  # fmt: skip


def test_conditional_may_ask_for_a_macro_of_an_included_header() -> None:
    found = parse_files(
        a='#include "b.h"\n#if LEVEL(2) && defined(WITH_F)\nint f(void);\n#endif\n',
        b='#include "a.h"\n#include "b.h"\n#define WITH_F\n#define LEVEL(n) ((n) > 1)\n',
    )
    assert "f" in found.functions


def test_include_cycles_end() -> None:
    found = parse_files(
        a='#include "b.h"\n#define A B\nenum { X = A };\n',
        b='#include "c.h"\n#define B C\n',
        c='#include "a.h"\n#define C A\nint f(void);\n',
    )
    assert "f" in found.functions
    assert any("A has no known value" in s.reason for s in found.skipped)


def test_conditional_inside_an_enum_or_struct_is_followed() -> None:
    found = parse_text(
        "enum E {\n A,\n#ifdef __cplusplus\n B,\n#endif\n#ifdef __GNUC__\n C,\n#endif\n D };\n"
        "struct S {\n int a;\n#if 0\n int b;\n#endif\n int c; };\n"
    )
    assert dict(found.enums["E"]) == {"A": 0, "C": 1, "D": 2}
    assert [f.name for f in found.structs["S"].fields] == ["a", "c"]
    assert [s.text for s in found.skipped] == ["B,", "int b;"]


def test_typedefs_opaque_structs_and_function_pointers() -> None:
    found = parse_text(
        "typedef struct aclTensor aclTensor;\nstruct Fwd;\n"
        "typedef void *aclrtStream, *aclrtEvent;\n"
        "typedef void (*aclrtCallback)(void *data);\ntypedef int Fn(int);\ntypedef char Name[16];\n"
        "typedef enum Tag { A } Alias;\ntypedef struct { int n; } Plain, *PlainPtr;\n"
        "int f(aclrtStream s, aclrtCallback c, Alias a, Plain p, PlainPtr q, aclTensor *t);"
    )
    assert found.typedefs["aclTensor"] == "struct aclTensor"
    assert found.typedefs["aclrtEvent"] == "void *"
    assert found.typedefs["aclrtCallback"] == "void (*)(void *)"
    assert found.typedefs["Name"] == "char[16]"
    assert found.typedefs["PlainPtr"] == "struct Plain *"
    kinds = [p.kind for p in found.functions["f"].params]
    assert kinds == [
        Kind.HANDLE, Kind.FUNCTION, Kind.ENUM, Kind.STRUCT, Kind.HANDLE, Kind.TENSOR,
    ]  # fmt: skip
    assert set(found.enums) == {"Tag", "Alias"}
    assert not found.skipped


def test_default_argument_is_left_out_and_reported_while_the_function_stays() -> None:
    found = parse_text("int f(int a, size_t n = sizeof(int) + (1, 2), void *p = nullptr);")
    assert found.functions["f"].prototype == "int (int, size_t, void *)"
    assert [(s.line, s.reason) for s in found.skipped] == [
        (1, "C++: default value of n, p left out")
    ]


CXX = {
    "template <typename T> T max(T a, T b);": 1,
    "template <class T>\nstruct Box { T t; };": 1,
    "namespace acl {\nint hidden(void);\nclass X {};\n}\n": 1,
    "class Runtime;": 1,
    "class Runtime { public: int n; virtual void f(); };": 1,
    "using Stream = void *;": 1,
    "enum class Mode : int { A, B };": 1,
    "int wrap(const std::string &s);": 1,
    "int move(Runtime &&r);": 1,
    "struct Base { int n; }; struct Derived : Base { int m; };": 1,
    "struct WithMethod { int n; int get() const; };": 1,
    "inline int twice(int n) { return 2 * n; }": 1,
    "static inline void init(Config *c) { if (c) { c->n = 1; } }": 1,
    "int operator+(A a, B b);": 1,
    "extern int global_counter;": 1,
    "static const int TABLE[2] = {1, 2};": 1,
    "static_assert(sizeof(int) == 4, \"int\");": 1,
    "friend int f();": 1,
    "asm(\"nop\");": 1,
}  # fmt: skip


@pytest.mark.parametrize("text", CXX)
def test_what_is_not_c_or_not_exported_is_a_row_and_harms_nothing_around_it(text: str) -> None:
    found = parse_text(f"int before(void);\n{text}\nint after(char c);\n")
    assert {"before", "after"} <= set(found.functions)
    assert set(found.functions) <= {"before", "after"}
    rows = [s for s in found.skipped if s.line >= 2]
    assert len(rows) == CXX[text]
    assert all(s.header == "header.h" and s.reason and s.text for s in rows)


def test_enum_inside_a_struct_is_declared_beside_it() -> None:
    found = parse_text("struct S { enum Mode { OFF, ON = 4 } mode; enum { LOW, HIGH } level; };")
    assert dict(found.enums["Mode"]) == {"OFF": 0, "ON": 4}
    assert found.constants["HIGH"] == 1
    assert found.structs["S"].size == 8


def test_one_phase_functions_of_any_shape_are_plain_functions() -> None:
    found = parse_text(
        "aclnnStatus aclnnTransQuantParam(const float *scale, uint64_t n, const float *offset, "
        "uint64_t m, uint64_t **quant, uint64_t *size);\n"
        "aclnnStatus aclnnNpuFormatCastCalculateSizeAndFormat(const aclTensor *src, int format, "
        "aclDataType type, int64_t **dims, uint64_t *rank, int *actual);\n"
        "int32_t aclnnGetRandom(void);"
    )
    assert not found.ops
    quant = found.functions["aclnnTransQuantParam"].params
    assert [p.direction.name for p in quant] == ["IN", "IN", "IN", "IN", "OUT", "OUT"]
    assert found.functions["aclnnGetRandom"].prototype == "int32_t (void)"


def test_enum_with_a_stated_type_has_its_width() -> None:
    found = parse_text("typedef enum E : uint8_t { A, B } E; struct S { E e; uint8_t n; };")
    assert found.structs["S"].size == 2
    assert dict(found.enums["E"]) == {"A": 0, "B": 1}


def test_type_that_no_header_declares_is_reported_and_refused_by_value() -> None:
    found = parse_text("int f(Mystery m, Mystery *p, aclrtStream s, aclDataType t);")
    assert [p.kind for p in found.functions["f"].params] == [
        Kind.STRUCT, Kind.POINTER, Kind.HANDLE, Kind.ENUM,
    ]  # fmt: skip
    assert [s.reason for s in found.skipped] == ["type is not declared"]


def test_file_in_gb18030_or_utf16_is_read() -> None:
    text = "/* 数据类型 */ int f(void);"
    assert "f" in parse_text(text.encode("gb18030")).functions
    assert "f" in parse_text(text.encode("utf-16")).functions
