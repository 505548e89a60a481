"""What the operators find in kernel text, and that instrumented text compiles and switches."""

import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("tree_sitter_cpp", reason="kernels are parsed by tree-sitter")

from . import tree
from .bugs import Bug, BugError, fits, load, planted
from .forms import WIDTHS, form_of
from .instrument import rendered
from .operators import bodies, sites
from .sites import keyed

ROW = b"ACL_FN(Add, Arith, (T a, T b, T alpha), a + alpha * b)\n"
LOOP = b"""template <class C>
void scale(C* out, const C* x, C factor, int64_t n) {
  ACL_IVDEP
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] * factor;
}
"""


def changes(source, kind):
    found = [(source[s.start : s.end].decode(), c.text or c.words)
             for s in sites(source) for c in s.changes if c.kind == kind]  # fmt: skip
    return sorted(found)


def test_row_of_a_scalar_function_loses_its_attribute():
    assert ("alpha * b", "(b)") in changes(ROW, "operand")
    assert ("a + alpha * b", "a - alpha * b") in changes(ROW, "arithmetic")


def test_result_of_a_row_is_narrowed_and_loses_signs_and_nans():
    assert [w for _, w in changes(ROW, "narrow")] == ["narrowed"]
    assert [w for _, w in changes(ROW, "zero")] == ["-0.0 lost"]
    assert [w for _, w in changes(ROW, "nan")] == ["NaN lost", "inf lost"]


def test_loop_ends_early_and_above_sizes():
    assert changes(LOOP, "bound") == [("i < n", "i < (n) - 1")]
    assert [w for _, w in changes(LOOP, "tail")] == [
        f"i < aclsim_mutants::up_to(n, {n})" for n in (1024, 64, 65536)
    ]


def test_nan_test_is_inverted():
    source = b"float f(float x) { if (x != x) { return 1.0f; } return x; }"
    assert ("x != x", "x == x") in changes(source, "nan")


def test_refusals_of_phase_one_are_left_alone():
    source = b'aclnnStatus f(Call& c) { if (n < 2) { return c.fail(1, "%d", n + 3); } return 0; }'
    assert {t for t, _ in changes(source, "comparison") + changes(source, "arithmetic")} == set()


def test_constants_that_must_be_constant_are_left_alone():
    source = b"void f() { constexpr int n = 4; float x[3]; g<7>(); switch (a) { case 5: break; } }"
    assert changes(source, "constant") == []


def test_value_that_is_kept_from_the_first_call_needs_a_fresh_process():
    found = sites(b"int f() { static const int n = g(2); return n; }")
    assert all(s.once for s in found)


def test_names_stay_when_lines_move():
    def names(source):
        found = sites(source)
        base = 0
        for site in found:
            site.base, base = base, base + len(site.changes)
        return {m.key for m in keyed(
            [(s, c, 1, source[s.start : s.end].decode()) for s in found for c in s.changes], "x"
        )}  # fmt: skip

    assert names(LOOP) == names(b"// a comment\n\n" + LOOP)


def test_bug_that_fits_no_source_names_itself():
    with pytest.raises(BugError, match="forgets alpha"):
        planted(ROW, [], [Bug("forgets alpha", "x.cpp", "a - beta", "a")])


MAIN = b"""
#include <cstdint>
#include <cstdio>
%s
int main(int, char** given) {
  float x[3] = {1.5f, 2.5f, 3.5f}, out[3] = {};
  aclsim_mutants::board->active = atoi(given[1]);
  scale(out, x, 2.0f, 3);
  printf("%%g %%g %%g\\n", out[0], out[1], out[2]);
}
"""


@pytest.fixture(scope="module")
def switched(tmp_path_factory):
    """The loop above, compiled once with all its mutants: (sites, run one)."""
    compiler = shutil.which("g++")
    if not compiler:
        pytest.skip("needs g++")
    folder = tmp_path_factory.mktemp("switched")
    found = sites(LOOP)
    base = 10
    for site in found:
        site.base, base = base, base + len(site.changes)
    text = rendered(LOOP, found, ()).text.replace("ACL_IVDEP", "")
    (folder / "main.cpp").write_text(MAIN.decode().replace("%s", text).replace("%%", "%"))
    subprocess.run([compiler, "-std=c++17", f"-I{Path(__file__).parent}", "main.cpp", "-o", "main"],
                   cwd=folder, check=True)  # fmt: skip

    def run(mutant):
        command = [folder / "main", str(mutant)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    return found, run


def mutant_of(found, words):
    return next(s.base + k for s in found for k, c in enumerate(s.changes) if c.words == words)


def test_no_mutant_changes_nothing(switched):
    assert switched[1](-1) == ["3", "5", "7"]


@pytest.mark.parametrize(("words", "result"), [
    ("one step early", ["3", "5", "0"]), ("/", ["0.75", "1.25", "1.75"]),
    ("without * factor", ["1.5", "2.5", "3.5"]), ("left out", ["0", "0", "0"]),
])  # fmt: skip
def test_mutant_is_switched_at_run_time(switched, words, result):
    found, run = switched
    assert run(mutant_of(found, words)) == result


def test_choice_between_equals_is_no_mutant():
    assert changes(b"ACL_FN(Low, Real, (T a, T b), a < b ? a : b)\n", "comparison") == [
        ("a < b", "a >= b")
    ]


def test_size_of_the_workspace_is_left_alone():
    source = b"aclnnStatus f(Call& c) { c.workspace_size = n * 8; return 0; }"
    assert changes(source, "operand") == []


def test_every_bug_still_fits_its_source():
    stale = [f"{b.file}: {b.name}" for b in load()
             if not fits((tree.sources() / b.file).read_bytes(), b)]  # fmt: skip
    assert not stale, f"mend or remove what no source has: {stale}"


def whole(source, bug):
    """Whether something around what the bug replaces can be switched."""
    start = bug.place(source)
    end = start + len(bug.find.encode())
    inside = [first <= start and end <= last
              for _, first, last in bodies(source) if start < last and first < end]  # fmt: skip
    return all(inside) and form_of(source, start, end, bug.put, WIDTHS[0]) is not None


def test_every_bug_is_a_part_that_can_be_switched():
    broken = [f"{b.file}: {b.name}" for b in load()
              if not whole((tree.sources() / b.file).read_bytes(), b)]  # fmt: skip
    assert not broken, f"beyond a row's expression, or in a constructor's initialisers: {broken}"


def test_a_function_that_a_static_value_is_made_by_needs_a_fresh_process():
    text = b"int h(int x) { return x - 1; } int g(int x) { return h(x) + 1; } "
    found = sites(text + b"int f(int y) { static const int n = g(2); return n * y; }")
    once = {s.function: s.once for s in found}
    assert once == {"h": True, "g": True, "f": once["f"]}
    assert not all(s.once for s in found if s.function == "f")
