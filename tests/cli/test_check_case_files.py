"""`check --cases`: exactly the calls of a file, by our rule and by a named standard."""

import csv
import re

import pytest
from click import UsageError
from click.testing import CliRunner
from mindtorch_npu import exits
from mindtorch_npu.main import group

CASES = """\
testcase_name,api_name,tensor_view_shapes,tensor_dtypes,attributes,tensor_view_strides
plain,aclnnSub,"((2,3),(2,3),(2,3))","('fp16','fp16','fp16')",{'alpha': 2.0},
strided,aclnnSub,"((4,3),(4,3),(4,3))",,{'alpha': 1},"((6,2),(0,1),(1,4))"
refused,aclnnSub,"((4,3),(4,2),(4,3))",,{'alpha': 1},
"""
OPS = "def aclnnSub(self, other, alpha):\n    return (self - alpha * other){more}\n"


def check(tmp_path, monkeypatch, *words, more="", cases=CASES):
    monkeypatch.setenv("MINDTORCH_GOLDEN", "")
    (tmp_path / "cases.csv").write_text(cases)
    (tmp_path / "ops.py").write_text(OPS.format(more=more))
    options = ["--cases", tmp_path / "cases.csv", "--golden", tmp_path / "ops.py", "--simulator",
               "--jobs", "1", "--journal", tmp_path / "run.jsonl", *words]  # fmt: skip
    outcome = CliRunner().invoke(group, ["check", *map(str, options)], standalone_mode=False)
    if outcome.exception is not None:
        raise outcome.exception
    return outcome.return_value, outcome.output


def rows(path):
    with path.open() as file:
        return {row["testcase_name"]: row for row in csv.DictReader(file)}


def test_each_row_has_both_verdicts_and_a_row_of_results(tmp_path, monkeypatch):
    out = tmp_path / "out.csv"
    code, text = check(tmp_path, monkeypatch, "--compare", "mixed", "--compare", "binary",
                       "--compare", "cross_check", "--results", out)  # fmt: skip
    table = rows(out)
    assert code == exits.NOT_JUDGED, text
    assert table["plain"]["precision_status"] == table["strided"]["precision_status"] == "PASS"
    assert table["plain"]["standards"].startswith("mixed: PASS (100.0000% within bounds")
    assert "binary: PASS" in table["strided"]["standards"]
    assert "cross_check: PASS" in table["plain"]["standards"]
    assert table["refused"]["precision_status"] == "FAIL"
    assert table["refused"]["tensor_view_shapes"] == "((4,3),(4,2),(4,3))"


def test_ours_decides_unless_the_standard_is_asked_to(tmp_path, monkeypatch):
    head, _, strided, _ = CASES.splitlines()
    cases = f"{head}\n{strided}\n"
    options = {"more": " + 5e-4", "cases": cases}
    words = ("--compare", "mixed", "--compare", "cross_check")
    code, text = check(tmp_path, monkeypatch, *words, **options)
    assert code == exits.PROBLEMS, text
    assert "cross_check: FAIL" in text
    assert "standard: mixed: PASS" in text
    (tmp_path / "run.jsonl").unlink()
    code, text = check(tmp_path, monkeypatch, "--deciding", "standard", "--compare", "mixed",
                       **options)  # fmt: skip
    assert code == exits.OK, text


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        ('"((2,3),(2,3),(2,3))",,"{\'beta\': 2}",', "parameters of the header, not 'beta': self,"),
        ('"((2,3),(2,3))",,,', "3 shapes, one for each of self, other, out"),
        ('"((2,-3),(2,3),(2,3))",,,', "of sizes from 0 on"),
        ('"((2,3),(2,3),(2,3))",,,"((3,1),(1,),(3,1))"', "2 strides for other"),
    ],
)
def test_a_cell_that_does_not_fit_the_header_ends_the_command(tmp_path, monkeypatch, cells, why):
    cases = f"{CASES.splitlines()[0]}\nwrong,aclnnSub,{cells}\n"
    with pytest.raises(UsageError, match=f"row 2, column .*{re.escape(why)}"):
        check(tmp_path, monkeypatch, cases=cases)


def test_an_option_of_case_files_needs_one():
    outcome = CliRunner().invoke(group, ["check", "add", "--compare", "mixed"])
    assert outcome.exit_code == exits.USAGE
    assert "--compare: it goes with --cases" in outcome.output
