"""What own_tests.py reads in the reports of clients' tests."""

from pathlib import Path

from own_tests import cases, drawn, ran

FILE = """
import unittest
class Test(unittest.TestCase):
    def test_good(self): print("a line of its own")
    def test_bad(self): self.fail()
    def test_wrong(self): raise ValueError
    @unittest.skip("why")
    def test_left_out(self): pass
class Endless(unittest.TestCase):
    def test_endless(self):
        import time; time.sleep(LONG)
unittest.main()
"""


def ends(outcome_cases: dict[str, str]) -> dict[str, str]:
    return {name.rpartition(".")[2]: how for name, how in outcome_cases.items()}


def test_cases_of_a_file_that_ends(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(FILE.replace("LONG", "0"))
    outcome = ran(tmp_path, "test_a.py", 60)
    assert outcome.code == 1
    assert ends(outcome.cases) == {
        "test_good": "ok", "test_bad": "FAIL", "test_wrong": "ERROR", "test_left_out": "skipped",
        "test_endless": "ok",
    }  # fmt: skip


def test_a_file_that_never_ends_is_late(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(FILE.replace("LONG", "1000").replace("Endless", "Z"))
    outcome = ran(tmp_path, "test_a.py", 12)
    assert outcome.code is None
    assert ends(outcome.cases)["test_endless"] == "?"
    assert ends(outcome.cases)["test_good"] == "ok"


def test_what_is_printed_amid_a_case_is_no_end() -> None:
    told = cases("test_a (m.T.test_a) ... ok is what I print\nFAIL\ntest_b (m.T.test_b) ... ok\n")
    assert ends(told) == {"test_a": "FAIL", "test_b": "ok"}


def test_a_draw_is_the_seeds(tmp_path: Path) -> None:
    for name in ("test_a.py", "test_b.py", "onnx/test_c.py", "other.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert sorted(drawn(tmp_path, 1, 9, ["onnx/"])) == ["test_a.py", "test_b.py"]
    assert drawn(tmp_path, 1, 3, []) == drawn(tmp_path, 1, 3, [])
