"""What a book's score says of a bug: caught by the bug itself, met, or never met."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("tree_sitter_cpp", reason="kernels are parsed by tree-sitter")

from . import findings, hunt, tree
from .bugs import Bug
from .findings import Finding, Trier
from .judge import Answer
from .reach import Reach
from .sites import Mutant

BUG = Bug("gather: index off", "ops/indexing/gather.cpp", "a", "b")
MUTANT = Mutant(7, "key", "bug", BUG.file, 1, "gather", "a", BUG.name, site=7)


class Board:
    def __init__(self):
        self.active, self.met = -1, False

    def choose(self, mutant, marked=False):
        self.active, self.met = mutant, False

    def off(self):
        self.active = -1


class FakeJudge:
    """Answers from a table: case -> (verdicts with the bug on, whether it is met)."""

    def __init__(self, answers):
        self.answers, self.board, self.served = answers, Board(), 1
        self.patience = []

    def open_for(self, case):
        pass

    def restart(self):
        pass

    def cases(self, ops, level):
        return []

    def run(self, case, seconds=60.0):
        if self.board.active < 0:
            return Answer(case, "PASS")
        verdicts, met = self.answers[case]
        self.patience.append(seconds)
        self.board.met = met
        return Answer(case, verdicts.pop(0) if len(verdicts) > 1 else verdicts[0])


@pytest.fixture
def tried(monkeypatch):
    """The finding of one bug, from answers by case."""
    monkeypatch.setattr(tree, "load", list)

    def finding(answers, **options):
        quick = Reach("quick", dict.fromkeys(answers, ("PASS", 0.1, 0)), [np.array([7])])
        judge = FakeJudge(answers)
        trier = Trier(judge, quick, {BUG.name: BUG}, **options)

        return trier.finding(MUTANT), judge

    return finding


def test_a_failure_that_never_met_the_bug_is_an_artefact(tried):
    found, _ = tried({"gather/functional/s0": (["FAIL"], False)})
    assert (found.verdict, found.artefacts) == (findings.NEVER, ("gather/functional/s0",))


def test_a_bug_that_cases_meet_and_pass_is_not_noticed(tried):
    found, _ = tried({"gather/functional/s0": (["PASS"], True)})
    assert (found.verdict, found.met, found.failed) == (findings.UNNOTICED, 1, 0)


def test_thickness_is_the_share_of_cases_that_met_the_bug_and_failed(tried):
    answers = {f"gather/functional/s{i}": (["FAIL" if i % 4 == 0 else "PASS"], i % 2 == 0)
               for i in range(16)}  # fmt: skip
    found, _ = tried(answers)
    assert (found.verdict, found.level, found.met, found.failed) == ("caught", "quick", 8, 4)
    assert found.thickness == 0.5
    assert found.case in answers


def test_a_hang_counts_only_after_ten_times_the_patience(tried):
    found, judge = tried({"gather/functional/s0": (["HANG", "PASS"], True)})
    assert found.verdict == findings.UNNOTICED
    assert judge.patience[1] == pytest.approx(10 * judge.patience[0])
    found, _ = tried({"gather/functional/s0": (["HANG", "HANG"], True)})
    assert found.verdict == findings.CAUGHT


def test_enough_cases_that_met_a_caught_bug_end_its_search(tried):
    answers = {f"gather/functional/s{i}": (["FAIL"], True) for i in range(30)}
    assert tried(answers, enough=5)[0].tried == 5


def test_what_no_case_reaches_escapes():
    bugs = [Finding("a", "x", "live", "caught", "quick", 3, 3, 3, 3),
            Finding("b", "x", "live", "never met"), Finding("c", "x", "dead"),
            Finding("d", "x", "does-not-apply")]  # fmt: skip
    totals = findings.totals(bugs)
    assert (totals["quick %"], totals["full %"], totals["unreached"]) == (50.0, 50.0, 1)
    assert findings.states(bugs) == {"quick": ["a"], "unreached": ["b"], "equivalent": ["c"]}


def test_a_catch_by_one_case_of_many_is_thin():
    assert Finding("a", "x", "live", "caught", met=60, failed=1).thin
    assert not Finding("a", "x", "live", "caught", met=3, failed=1).thin


def test_findings_go_on_where_a_run_ended_but_for_bugs_that_changed(tmp_path):
    path, other = tmp_path / "out.json", replace(BUG, name="other")
    found = {b.name: Finding(b.name, b.file, "live", digest=findings.digest(b))
             for b in (BUG, other)}  # fmt: skip
    findings.write(path, found)
    assert findings.read(path, [BUG, other]) == found
    assert list(findings.read(path, [BUG, replace(other, put="c")])) == [BUG.name]


def test_cases_of_the_nearest_operators_come_first_and_no_bound_hides_them(monkeypatch):
    monkeypatch.setattr(tree, "load", list)
    cases = [f"{op}/functional/s{i}" for op in ("exp", "add", "_softmax") for i in range(40)]
    hunter = hunt.Hunter(FakeJudge({}), Reach("quick"), 0, 10, 0)
    place = Mutant(1, "k", "bug", "ops/activation/softmax.cpp", 1, "v_exp", "", "")
    ordered = hunter.order(cases, place, 10)
    assert [c.partition("/")[0] for c in ordered[:80]] == ["exp"] * 40 + ["_softmax"] * 40
    assert {c.partition("/")[0] for c in ordered[80:]} == {"add"}
