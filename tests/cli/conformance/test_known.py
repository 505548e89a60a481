"""Known issues are scoped, have a reason and an end, and do not rot unseen."""

import datetime

import pytest
from mindtorch_npu.conformance.record import known
from mindtorch_npu.conformance.record.result import Result

TODAY = datetime.date(2026, 12, 1)
FAIL = Result("add/grad/s0", "add", "grad", "FAIL", dtype="float16")
ENTRY = """
[[issue]]
op = "ad*"
dtype = "float16"
cann = ">=8.1,<9.2"
reason = "rounds twice"
expires = 2027-01-31
"""
HERE = {"cann": "9.1.0", "soc": "Ascend910B2"}


def loaded(tmp_path, text=ENTRY):
    path = tmp_path / "known.toml"
    path.write_text(text)
    return known.load(path)


def test_matching_failure_is_expected(tmp_path):
    found = known.apply(FAIL, loaded(tmp_path), HERE, TODAY)
    assert (found.verdict, found.issue) == ("XFAIL", "rounds twice")


def test_matching_pass_is_shown_as_xpass(tmp_path):
    found = known.apply(FAIL.with_(verdict="PASS"), loaded(tmp_path), HERE, TODAY)
    assert found.verdict == "XPASS"


def test_other_dtypes_and_versions_stay_failures(tmp_path):
    issues = loaded(tmp_path)
    assert known.apply(FAIL.with_(dtype="float32"), issues, HERE, TODAY).verdict == "FAIL"
    assert known.apply(FAIL, issues, {**HERE, "cann": "9.2.0"}, TODAY).verdict == "FAIL"
    assert known.apply(FAIL, issues, {**HERE, "cann": ""}, TODAY).verdict == "FAIL"


def test_expired_entry_excuses_nothing_and_says_so(tmp_path):
    found = known.apply(FAIL, loaded(tmp_path), HERE, datetime.date(2027, 2, 1))
    assert found.verdict == "FAIL"
    assert "expired on 2027-01-31" in found.issue


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[issue]]\nop='a'\nexpires=2027-01-01", "no reason"),
        ("[[issue]]\nop='a'\nreason='r'", "expires must be a date"),
        ("[[issue]]\nreason='r'\nexpires=2027-01-01", "no scope"),
        ("[[issue]]\nop='a'\nreason='r'\nexpires=2027-01-01\ncolour=1", "unknown field 'colour'"),
        ("[[issue", "not TOML"),
    ],
)
def test_incomplete_entries_are_refused(tmp_path, text, says):
    with pytest.raises(known.KnownIssuesError, match=says):
        loaded(tmp_path, text)


def test_version_ranges():
    assert known.in_range("8.1.RC1", ">=8.1,<8.3")
    assert not known.in_range("8.3.0", ">=8.1,<8.3")
    assert known.in_range("9.1.0", "==9.1")
    assert not known.in_range("", ">=1")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[[issues]]\nop = "add"\nreason = "x"\nexpires = 2027-01-31\n', "unknown table 'issues'"),
        ('[[issue]]\nop = "add"\nreason = "x"\nexpires = 2027-01-31T00:00:00\n', "must be a date"),
    ],
)
def test_mistyped_table_or_date_is_named(tmp_path, text, says):
    path = tmp_path / "known.toml"
    path.write_text(text)
    with pytest.raises(known.KnownIssuesError, match=says):
        known.load(path)
