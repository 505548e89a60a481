"""Strict mode names every planted fault, and says nothing about a clean program."""

import signal
from pathlib import Path

import pytest
from compiled import run

# Fault planted by programs/faults.cpp → the finding that must name it.
FAULTS = {
    "tensor-use-after-destroy": "use-after-destroy",
    "tensor-getter-after-destroy": "use-after-destroy",
    "stream-use-after-destroy": "use-after-destroy",
    "event-use-after-destroy": "use-after-destroy",
    "tensor-double-destroy": "double-destroy",
    "scalar-double-destroy": "double-destroy",
    "event-double-destroy": "double-destroy",
    "stream-double-destroy": "double-destroy",
    "wrong-kind": "not-a-handle",
    "executor-used-twice": "executor-used-twice",
    "list-member-destroyed-again": "list-member-destroyed-again",
    "workspace-missing": "workspace-missing",
    "workspace-too-small": "workspace-too-small",
    "workspace-freed-while-queued": "freed-while-in-use",
    "buffer-freed-while-queued": "freed-while-in-use",
    "host-pointer": "pointer-outside-device-memory",
    "freed-pointer": "pointer-outside-device-memory",
    "view-past-storage": "view-past-storage",
    "view-past-allocation": "view-past-allocation",
    "copy-past-allocation": "copy-past-allocation",
    "double-free": "free-of-unknown-memory",
    "no-context": "no-context",
    "wrong-context": "wrong-context",
    "call-after-finalize": "call-after-finalize",
}
LEAKS = {
    "leak-tensor": "aclTensor",
    "leak-memory": "device memory",
    "leak-event": "aclrtEvent",
    "leak-executor": "aclOpExecutor",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_error_mode_names_the_fault_and_fails_the_call(fault: str) -> None:
    outcome = run("faults", fault, ACLSIM_STRICT="error")
    assert outcome.code == 0, outcome.out + outcome.err
    assert outcome.kinds()[0] == FAULTS[fault], outcome.findings
    assert "code 0" not in outcome.out
    found = outcome.findings[0]
    assert found["call"]
    assert found["object"]
    assert found["remedy"].endswith(".")
    assert "faults(" in found["at"]


@pytest.mark.parametrize("fault", LEAKS)
def test_leaks_are_named_at_finalize_with_their_origin(fault: str) -> None:
    outcome = run("faults", fault, ACLSIM_STRICT="error")
    leaks = [f for f in outcome.findings if f["finding"] == "leak"]
    assert [f["object"].split(" x")[0] for f in leaks] == [LEAKS[fault]]
    assert "faults(" in leaks[0]["created"]
    assert leaks[0]["count"] == (3 if fault == "leak-tensor" else 1)
    assert "finalize 148051" in outcome.out


def test_report_mode_lets_harmless_faults_continue() -> None:
    outcome = run("faults", "leak-tensor", ACLSIM_STRICT="report")
    assert outcome.kinds() == ["leak"]
    assert "finalize 0" in outcome.out


def test_abort_mode_aborts_at_the_fault() -> None:
    outcome = run("faults", "tensor-double-destroy", ACLSIM_STRICT="abort")
    assert outcome.code == -signal.SIGABRT
    assert outcome.kinds() == ["double-destroy"]


@pytest.mark.parametrize("mode", ["report", "error", "abort"])
def test_a_clean_program_reports_nothing(mode: str) -> None:
    outcome = run("faults", "clean", ACLSIM_STRICT=mode)
    assert outcome.findings == []
    assert "finalize 0" in outcome.out, outcome.out + outcome.err


def test_without_strict_mode_nothing_is_reported() -> None:
    outcome = run("faults", "leak-tensor")
    assert outcome.findings == []
    assert "finalize 0" in outcome.out


def test_findings_go_to_stderr_when_no_report_is_asked_for() -> None:
    outcome = run("faults", "tensor-double-destroy", ACLSIM_STRICT="report", ACLSIM_REPORT="")
    assert "double-destroy in aclDestroyTensor" in outcome.err
    assert "created at" in outcome.err


RULE = '[[allow]]\nfinding = "leak"\nobject = "aclTensor*"\ncreated = "faults(*"\nreason = "ours"\n'


def test_findings_that_a_file_accepts_are_not_told_and_fail_nothing(tmp_path: Path) -> None:
    rules = tmp_path / "allow.toml"
    rules.write_text(f"# known\n{RULE}")
    allowed = {"ACLSIM_STRICT": "error", "ACLSIM_ALLOW": str(rules)}
    tensor = run("faults", "leak-tensor", **allowed)
    assert tensor.kinds() == []
    assert "code 0" in tensor.out
    assert run("faults", "leak-event", **allowed).kinds() == ["leak"]


def test_a_finding_that_is_accepted_no_longer_fails_its_call(tmp_path: Path) -> None:
    rules = tmp_path / "allow.toml"
    rules.write_text('[[allow]]\nfinding = "double-free"\nreason = "another"\n')
    options = {"ACLSIM_STRICT": "abort", "ACLSIM_ALLOW": str(rules)}
    assert run("faults", "host-pointer", **options).code == -signal.SIGABRT
    rules.write_text('[[allow]]\nfinding = "pointer-outside-*"\ncall = "aclnn*"\nreason = "ours"\n')
    assert run("faults", "host-pointer", **options).code == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[[allow]]\nfinding = "leak"\n', "a reason in the last rule"),
        ('[[allow]]\ncolour = "red"\n', "line 2: expected [[allow]], or one of finding"),
        ("finding leak\n", "line 1: expected [[allow]]"),
        (None, "cannot be read"),
    ],
)
def test_a_wrong_file_of_accepted_findings_is_named_and_allows_nothing(
    text: str | None, expected: str, tmp_path: Path
) -> None:
    rules = tmp_path / "allow.toml"
    if text is not None:
        rules.write_text(text)
    outcome = run("faults", "leak-tensor", ACLSIM_STRICT="report", ACLSIM_ALLOW=str(rules))
    assert expected in outcome.err
    assert outcome.kinds() == ["leak"]
