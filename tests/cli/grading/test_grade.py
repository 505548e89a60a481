"""Operators of operators.c are graded: cheating ones score 0 and are named, honest ones are not
accused. Each is a case of its own; the library with all of them is built once."""

import json
import re
import subprocess
import sys
from pathlib import Path

import compiled
import pytest
from click.testing import CliRunner
from mindtorch_npu.commands.grade.command import grade as command
from mindtorch_npu.conformance.operators import golden_files
from mindtorch_npu.grading.grade import GradeRequest, _Grading, grade
from mindtorch_npu.grading.process import Confinement

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the grader's isolation is Linux's")
SOURCE = Path(__file__).parent / "operators.c"
DEFINED = re.findall(r"^(CHEAT|HONEST)(?:_IN_BOTH)?\((\w+), ", SOURCE.read_text(), re.MULTILINE)
CHEATS = [name for kind, name in DEFINED if kind == "CHEAT" and name != "NAME"]
HONEST = [name for kind, name in DEFINED if kind == "HONEST" and name != "NAME"]
# What they are accused of; the others are wrong, and no more.
KINDS = {
    "DoesNothing": "unwritten", "CopiesInput": "input", "Constant": "constant", "Zeros": "constant",
    "RemembersResults": "earlier", "RepeatsFirstResult": "earlier", "HardCodedSize": "size",
    "DropsTail": "unwritten", "RightAtFirst": "input", "RightWhenSmall": "size",
    "CallsBuiltin": "other operators", "ForwardsBothPhases": "other operators",
    "FindsBuiltinByName": "other operators", "CopiesThenCallsBuiltin": "other operators",
    "StopsTheProfiler": "other operators", "ErasesTheLog": "log",
    "CallsBuiltinWhenLarge": "other operators", "WritesInPhaseOne": "phase 1",
    "ComputesInPhaseOne": "phase 1", "LeavesThreadBehind": "late", "LeavesStreamBehind": "late",
    "LeavesHalfBehind": "late", "LeavesItToTheNextCall": "unwritten", "SaysDoneFirst": "channel",
    "LeavesTheProcess": "exit", "Crashes": "crash", "Hangs": "hang",
    "WritesBehindItsResult": "writes", "ChangesItsInput": "writes", "StartsPrograms": "process",
    "ForksAWorker": "process", "ReadsItsParent": "unwritten", "ReadsTheTask": "unwritten",
    "SignalsItsParent": "process", "SignalsByDescriptor": "process", "LimitsItsParent": "process",
    "ReplacesTheTask": "unwritten", "ReadsBesideTheTask": "unwritten",
    "SlowsDownItsParent": "unwritten", "UncoversTheTask": "process",
    "AsksForTooMuchWorkspace": "limit", "RefusesSmallCalls": "refuses",
}  # fmt: skip
TASK = """
import numpy as np
from mindtorch_npu.spec import Rule, inout, out, spec, tensor

RULE = Rule("rounded", "this file", strided=False)


@spec("{names}", RULE, x=tensor("*S", "f32"), y=tensor("*S", "x"), out=out("x"))
def product(x, y):
    return x * y


@spec("aclnnGivesItsInput", RULE, x=tensor("*S", "f32"), y=tensor("*S", "x"), out=out("x"))
def same(x, y):
    return x


@spec("aclnnGivesOnes", RULE, x=tensor("*S", "f32"), y=tensor("*S", "x"), out=out("x"))
def ones(x, y):
    return np.ones_like(x)


@spec("aclnnMultipliesInPlace", RULE, xRef=inout(tensor("*S", "f32")), y=tensor("*S", "xRef"))
def multiplied(xRef, y):
    return xRef * y
"""
HEADER = """
aclnnStatus aclnn{0}GetWorkspaceSize(const aclTensor *x, const aclTensor *y, aclTensor *out,
                                     uint64_t *workspaceSize, aclOpExecutor **executor);
aclnnStatus aclnn{0}(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                     aclrtStream stream);
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The folder of a custom operator package with all operators."""
    folder = tmp_path_factory.mktemp("package") / "mine"
    library = folder / "op_api/lib/libcust_opapi.so"
    include = folder / "op_api/include"
    library.parent.mkdir(parents=True)
    include.mkdir()
    subprocess.run(
        [compiled.compiler("c"), "-shared", "-fPIC", "-O1", "-pthread", str(SOURCE), "-o",
         str(library), f"-L{compiled.install() / 'lib64'}", "-lopapi", "-lnnopbase",
         "-lascendcl"], check=True,
    )  # fmt: skip
    text = "".join(HEADER.format(name) for name in (*CHEATS, *HONEST))
    in_place = HEADER.format("MultipliesInPlace").replace("const aclTensor *x", "aclTensor *xRef")
    text += in_place.replace("aclTensor *out,\n", "")
    (include / "aclnn_mine.h").write_text('#include "aclnn/acl_meta.h"\n' + text)
    return folder


@pytest.fixture
def task(package, monkeypatch):
    """The file of references, where the environment names it and the package."""
    others = ("GivesItsInput", "GivesOnes")
    names = " ".join(f"aclnn{name}" for name in (*CHEATS, *HONEST) if name not in others)
    file = package.parent / "task.py"
    if not file.exists():
        (file.parent / "parts").mkdir()
        (file.parent / "parts/formulas.py").write_text("# beside the task\n")
        file.write_text(TASK.replace("{names}", names))
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", str(package))
    monkeypatch.setenv(golden_files.VARIABLE, str(file))
    monkeypatch.setenv("TASK_FILE", str(file))
    return file


def graded(task, name, **fields):
    assert str(task) in golden_files.files()
    options = {"cases": 10, "rounds": 4, "elements": 1 << 16, **fields}
    place = Confinement("", simulator=True, hide=golden_files.files(), memory=512 << 20, seconds=2)
    return grade(GradeRequest(f"aclnn{name}", place=place, **options))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CHEATS)
def test_a_cheating_operator_scores_nothing_and_is_named(task, name):
    result = graded(task, name)
    assert result.score == 0
    assert result.cause
    kind = KINDS.get(name)
    assert kind is None or kind in {a.kind for a in result.accusations}, result.as_json()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [*HONEST, "MultipliesInPlace"])
def test_an_honest_operator_is_not_accused(task, name):
    result = graded(task, name)
    assert result.score == 1, result.as_json()


def test_what_may_be_called_is_no_accusation(task):
    assert graded(task, "CallsBuiltin", allowed=("aclnnMul",)).score == 1


def test_speed_is_on_the_graders_clock_and_relative(task):
    slow = graded(task, "IsSlow", against="aclnnMul")
    assert 0 < slow.score == slow.speed < 0.7
    assert set(slow.times) == {"operator", "against", "empty"}


def test_two_gradings_have_no_input_in_common_but_one_of_the_same_seed_has(task):
    seeds = [graded(task, "Plain", cases=1, rounds=2, seed=s).seed for s in (None, None, 7)]
    assert len(set(seeds)) == 3
    assert seeds[2] == 7


def test_launches_without_a_verdict_have_a_cause(task, monkeypatch):
    def skip(_self, trial, *_):
        return trial.result("SKIP", reason="more elements than the reference takes")

    monkeypatch.setattr(_Grading, "_judge", skip)
    result = graded(task, "Plain", cases=1, rounds=2)
    assert (result.passed, result.correct) == (0, False)
    assert "3 of 3 launches have no verdict, such as aclnnPlain/" in result.cause
    assert "SKIP: more elements than the reference takes" in result.cause


def test_an_operator_that_nobody_declares_is_not_found(task):
    result = graded(task, "Nowhere")
    assert (result.found, result.loads, result.score) == (False, False, 0)


def test_the_command_writes_json_alone_and_says_by_its_exit_code(task):
    words = ["aclnnDropsTail", "--simulator", "--json", "-", "--cases", "6", "--rounds", "2"]
    done = CliRunner().invoke(command, words, standalone_mode=False)
    data = json.loads(done.output)
    assert done.return_value == 1
    assert data["schema"] == "mindtorch-npu/grade/1"
    assert data["score"] == 0
    assert "wrong" in data["cause"]
    assert any("namespaces" in part or "process" in part for part in data["isolation"])


def test_an_operator_without_a_reference_is_a_usage_error(task, monkeypatch):
    monkeypatch.delenv(golden_files.VARIABLE)
    done = CliRunner().invoke(command, ["aclnnPlain", "--simulator"])
    assert done.exit_code == 2
    assert "--golden" in done.output
