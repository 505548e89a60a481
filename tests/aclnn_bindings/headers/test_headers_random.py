"""A C++ compiler agrees on random headers: bit-fields, packing, alignment, expressions, types."""

from pathlib import Path

import pytest
import random_header
import truth

from aclnn_bindings.interface.headers import parse_tree


@pytest.mark.skipif(truth.COMPILER is None, reason="no C++ compiler on PATH")
@pytest.mark.parametrize("seed", range(6))
def test_compiler_agrees_on_a_random_header(seed: int, tmp_path: Path) -> None:
    root = tmp_path / "include"
    root.mkdir()
    (root / "random.h").write_text(random_header.Writer(seed).header(), encoding="utf-8")
    found = parse_tree([root])
    assert {s.reason for s in found.skipped} <= {"type cannot be passed by value"}
    verdict = truth.ask(root, found, tmp_path)
    # Signed overflow is no constant to C++, though GCC folds it in C.
    wrong = [claim for claim in verdict.wrong if "non-constant condition" not in claim]
    assert not wrong, "\n".join(wrong[:10])
    assert not verdict.not_compiled
    assert verdict.checked > 500
