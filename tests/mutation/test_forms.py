"""A bug's text is switched at run time whatever part of a kernel it replaces."""

import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("tree_sitter_cpp", reason="kernels are parsed by tree-sitter")

from .bugs import Bug, BugError, load, planted
from .forms import form_of
from .instrument import rendered

SOURCE = b"""#include <cstdint>
constexpr int kTile = 4;
inline int total(const int* x, int64_t n) {
  int sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    int step = x[i] + 1;
    sum += step * 2;
  }
  return sum;
}
"""


def form(find, put, width="expression"):
    start = SOURCE.index(find.encode())
    return form_of(SOURCE, start, start + len(find.encode()), put, width)


def test_an_expression_is_switched_where_it_stands():
    result = form("step * 2", "step")
    assert (result.form, result.put, result.function) == ("expression", "step", "total")


def test_a_part_of_a_loops_head_takes_the_loop_along():
    result = form("i < n; ++i", "i < n; i += 2")
    assert (result.form, result.put[:40]) == (
        "statement",
        "for (int64_t i = 0; i < n; i += 2) {\n   ",
    )


def test_a_declared_name_takes_the_block_along_for_its_scope():
    assert form("int step = x[i] + 1;", "int step = x[i];").put.startswith(
        "{\n    int step = x[i];"
    )


def test_a_wider_form_is_the_function():
    result = form("step * 2", "step", "function")
    assert result.put.startswith("{\n  int sum = 0;")
    assert "sum += step;" in result.put


def test_a_constant_of_the_compiler_has_no_form():
    assert form("4", "8") is None


def test_an_entry_with_a_misspelt_field_is_named(tmp_path):
    path = tmp_path / "book.toml"
    path.write_text("['x.cpp'.b]\nfind = 'a'\nputs = 'b'\n")
    with pytest.raises(BugError, match="b lacks put and has puts, which no bug has"):
        load([path])


def test_two_bugs_of_one_name_are_refused(tmp_path):
    path = tmp_path / "book.toml"
    path.write_text("['x.cpp'.b]\nfind = 'a'\nput = 'b'\n['y.cpp'.b]\nfind = 'a'\nput = 'b'\n")
    with pytest.raises(BugError, match="two bugs of one name: b"):
        load([path])


PROGRAM = """
#include <cstdio>
#include <cstdlib>
%s
int main(int, char** given) {
  const int x[] = {1, 2, 3};
  aclsim_mutants::board->active = atoi(given[1]);
  aclsim_mutants::board->marked = atoi(given[2]);
  const int result = total(x, atoi(given[3]));
  printf("%%d %%d", result, aclsim_mutants::board->met);
}
"""
BUGS = [
    Bug("short", "x", "i < n; ++i", "i < n - MET(n > 2); ++i"),
    Bug("plain", "x", "step * 2", "step"),
    Bug("scaled", "x", "int step = x[i] + 1;", "int step = MET(x[i] == 3) ? 0 : x[i] + 1;"),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The function above, compiled once with its bugs: run(bug, size) -> (result, met)."""
    if not shutil.which("g++"):
        pytest.skip("needs g++")
    folder = tmp_path_factory.mktemp("met")
    sites = planted(SOURCE, [], BUGS)
    for base, site in enumerate(sites, 10):
        site.base = base
    (folder / "main.cpp").write_text(PROGRAM % rendered(SOURCE, sites, ()).text)
    subprocess.run(["g++", "-std=c++17", f"-I{Path(__file__).parent}", "main.cpp", "-o", "main"],
                   cwd=folder, check=True)  # fmt: skip
    ids = {site.changes[0].words: site for site in sites}

    def run(name, size):
        site = ids.get(name)
        words = ["-1", "0"] if site is None else [str(site.base), str(int(site.marked))]
        done = subprocess.run([folder / "main", *words, str(size)], capture_output=True, check=True)
        return tuple(map(int, done.stdout.split()))

    return run


@pytest.mark.parametrize(("bug", "size", "result"), [
    ("none", 3, (18, 0)), ("short", 3, (10, 1)), ("short", 2, (10, 0)), ("plain", 3, (9, 1)),
    ("plain", 0, (0, 0)), ("scaled", 2, (10, 0)), ("scaled", 3, (10, 1)),
])  # fmt: skip
def test_a_bug_notes_that_it_was_met_and_changes_nothing_else(program, bug, size, result):
    assert program(bug, size) == result
