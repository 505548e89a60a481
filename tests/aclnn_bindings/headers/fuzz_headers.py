"""Coverage-guided fuzzing of the header parser.

    pip install atheris
    python tests/aclnn_bindings/headers/fuzz_headers.py -max_total_time=60 -max_len=4096

The run fails on any exception and on any input that takes ten seconds.
"""

import sys

import atheris

with atheris.instrument_imports(include=["aclnn_bindings"]):
    from aclnn_bindings.interface.headers import (
        parse_text,
        tree as _tree,  # instrumented now, not at first use
    )

assert _tree.build

SEEDS = (
    b"ACLNN_API aclnnStatus aclnnAddGetWorkspaceSize(const aclTensor* self, aclTensor *out);",
    b"typedef struct S { int a : 3; union { char c[4]; }; } S;\n#pragma pack(1)\n",
    b"#if defined(A) && (B + 1 > 2)\n#else\nenum E { A = 1 << 3, B, C = sizeof(int) };\n#endif",
    b"#define F(a, b) ((a) | (b) << 2)\n#define G F(1, F(2, 3))\nint (*f(void))(int);",
    b'extern "C" {\n/** @param [in] x: \xe6\x95\xb0\xe6\x8d\xae\xe7\xb1\xbb\xe5\x9e\x8bINT8 */\n}',
)


def read(data: bytes) -> None:
    """Parses one input and decodes every row of the result."""
    found = parse_text(data)
    for table in (found.functions, found.enums, found.constants, found.typedefs, found.structs):
        list(table.values())
    for op in found.ops.values():
        assert isinstance(op.irregular, tuple)
    assert all(row.reason for row in found.skipped)


def main() -> None:
    for seed in SEEDS:
        read(seed)
    atheris.Setup([*sys.argv, "-timeout=10"], read)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
