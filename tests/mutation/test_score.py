"""Scores count what they say, and equivalents count only where they survive."""

import json
from collections import Counter

import pytest
from click.testing import CliRunner

pytest.importorskip("tree_sitter_cpp", reason="kernels are parsed by tree-sitter")

from . import book, command, runner, score
from .hunt import Verdict
from .sites import Mutant


def verdict(key, state, level="", kind="constant", file="ops/x.cpp", ops=("add",)):
    return Verdict(key, kind, file, state, level, ops=ops)


def test_share_leaves_out_equivalent_and_unreached():
    counts = Counter(quick=8, full=1, survived=1, equivalent=5, unreached=7)
    assert score.share(counts, full=False) == 80
    assert score.share(counts, full=True) == 90


def test_share_of_nothing_is_no_number():
    assert score.share(Counter(unreached=3), full=True) is None


def test_equivalent_counts_only_for_survivors():
    known = [("ops/x.cpp:*grain*", "only how threads share")]
    found = [verdict("ops/x.cpp:f:grain -> 2", "survived"),
             verdict("ops/x.cpp:g:grain -> 2", "killed", "quick"),
             verdict("ops/x.cpp:f:x[i] -> 2", "survived")]  # fmt: skip
    assert [v.state for v in book.judged(found, known)] == ["equivalent", "killed", "survived"]


def test_brackets_in_names_stand_for_themselves():
    known = [("ops/x.cpp:f:x[i] -> 2", "why")]
    assert next(book.judged([verdict("ops/x.cpp:f:x[i] -> 2", "survived")], known)).reason == "why"


def test_shared_loops_do_not_count_for_operators():
    found = [verdict("a", "killed", "quick"), verdict("b", "survived", file="loops/x.cpp")]
    assert score.by_operator(found) == {"add": Counter(quick=1)}


def test_verdicts_survive_a_torn_line(tmp_path):
    path = tmp_path / "v.jsonl"
    book.write(path, verdict("a", "survived"))
    with path.open("a") as file:
        file.write('{"key": "b", "ki')
    assert list(book.read(path)) == ["a"]


def test_every_written_down_equivalent_has_a_reason():
    assert all(key and reason for key, reason in book.equivalents())


def test_floor_is_missed_by_kills_or_by_reach():
    floor = score.Floor(seed=0, count=10, cases=1, reached=4, percent=70)
    killed, survived = verdict("a", "killed", "quick"), verdict("b", "survived")
    assert "killed" in floor.problem([killed, killed, survived, survived])
    assert "reached" in floor.problem([killed, killed])
    assert floor.problem([killed] * 4) == ""


def test_edit_of_a_kernel_exchanges_few_of_a_sample():
    def mutants(names):
        return [Mutant(i, n, "constant", "x", 1, "f", "1", "2") for i, n in enumerate(names)]

    names = [f"x:f:{i}" for i in range(200)]
    before = {m.key for m in runner.sampled(mutants(names), 20, 1)}
    after = {m.key for m in runner.sampled(mutants([*names[3:], "x:g:new"]), 20, 1)}
    assert len(before & after) >= 16


def test_stored_scores_have_one_line_for_each_entry_and_every_state():
    text = score.SCORES.read_text("utf-8")
    stored = json.loads(text)
    assert text == score.rendered(stored)
    assert set(stored["bugs"]) == set(score.STATES)
    assert all(len(counts) == len(score.STATES) for counts in stored["files"].values())
    counts = [map(int, text.split(" of ")) for text in json.loads(score.ATLAS.read_text("utf-8"))]
    assert all(killed <= reached for killed, reached in counts)


@pytest.fixture(scope="module")
def kernels():
    return list(command.tree.kernels())


@pytest.mark.parametrize(
    ("options", "kinds"), [(("--kind", "bug"), {"bug"}), (("--sample", "5"), None)]
)
def test_a_build_plants_what_its_options_choose(monkeypatch, kernels, options, kinds):
    planted = []
    monkeypatch.setattr(command.tree, "kernels", lambda: kernels)
    monkeypatch.setattr(command.tree, "build", lambda jobs, only: planted.append(only) or [])
    CliRunner().invoke(command.main, ["build", *options], catch_exceptions=False)
    named = {m.key: m.kind for k in kernels for m in k.mutants}
    chosen = {named[key] for key in planted[0]}
    assert chosen == kinds if kinds else (len(planted[0]), "bug" in chosen) == (5, False)


@pytest.mark.parametrize(
    ("changed", "says"),
    [({}, ""), ({"quick %": 70.0}, "caught at quick"), ({"median thickness": 0.5}, "fail"),
     ({"median thickness": None}, "fail"), ({"thin": 30}, "38 % of the catches are thin")],
)  # fmt: skip
def test_a_book_below_its_floor_says_what_is(changed, says):
    totals = {"quick %": 80.0, "median thickness": 0.9, "thin": 4, "verdicts": {"caught": 80}}
    floor = score.BookFloor(seed=0, count=80, quick=75, thickness=0.8, thin=20)
    problem = floor.problem(totals | changed)
    assert (says in problem) if says else problem == ""
