"""Operators are checked from programs: a report, no output, references of one's own."""

import json
import os

import mindtorch_npu
import pytest
from mindtorch_npu.conformance.operators.golden_files import GoldenError
from mindtorch_npu.conformance.run.engine import NothingSelectedError
from mindtorch_npu.spec import Rule, number, out, spec, tensor

OPTIONS = {"simulator": True, "dtypes": ("float32",)}


def aclnnSub(self, other, alpha):
    return self - alpha * other


def off_by_little(self, other, alpha):
    return self - alpha * other + 0.01


def raises(self, other, alpha):
    raise ZeroDivisionError("of one's own")


def gives_two(self, other, alpha):
    return self, other


def test_a_plain_function_is_a_reference(capfd):
    report = mindtorch_npu.check("aclnnSub", golden=aclnnSub, **OPTIONS)
    assert report.passed
    assert report.counts["PASS"] > 20
    assert report.assumed["aclnnSub"][0].startswith("self: shape [")
    assert json.loads(json.dumps(report.as_json()))["passed"] is True
    assert capfd.readouterr().out == ""


def test_a_wrong_operator_fails_with_its_cause_and_a_command():
    with pytest.raises(AssertionError, match="aclnnSub") as caught:
        mindtorch_npu.assert_conforms("aclnnSub", golden=off_by_little, **OPTIONS)
    assert "again: mindtorch-npu check aclnnSub --case" in str(caught.value)


def test_a_reference_that_raises_is_an_error_of_the_reference():
    with pytest.raises(ValueError, match="ZeroDivisionError: of one's own"):
        mindtorch_npu.check("aclnnSub", golden=raises, **OPTIONS)


def test_a_reference_of_another_number_of_results_is_an_error_of_the_reference():
    with pytest.raises(ValueError, match="gives 2 results, the header has 1"):
        mindtorch_npu.check("aclnnSub", golden=gives_two, **OPTIONS)


def test_a_local_function_is_refused_since_workers_cannot_import_it():
    with pytest.raises(TypeError, match="top level of a module"):
        mindtorch_npu.check("aclnnSub", golden=lambda self, other, alpha: self, **OPTIONS)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(GoldenError, match=r"missing\.py: no such file"):
        mindtorch_npu.check("aclnnSub", golden=tmp_path / "missing.py", **OPTIONS)


def test_a_file_that_cannot_be_imported_says_which_line(tmp_path):
    file = tmp_path / "ops.py"
    file.write_text("import numpy\nbroken = numpy.nothing\n")
    with pytest.raises(GoldenError, match=r"ops\.py can't be imported: AttributeError.*line 2"):
        mindtorch_npu.check("aclnnSub", golden=file, **OPTIONS)


def test_a_file_without_a_reference_is_refused(tmp_path):
    file = tmp_path / "ops.py"
    file.write_text("import math\n")
    with pytest.raises(GoldenError, match=r"ops\.py: declares no reference"):
        mindtorch_npu.check("aclnnSub", golden=file, **OPTIONS)


def test_a_declaration_in_a_file_gives_its_own_cases(tmp_path):
    file = tmp_path / "ops.py"
    file.write_text(
        "from mindtorch_npu.spec import Rule, number, out, spec, tensor\n"
        "@spec('aclnnSub', Rule('composite', 'one'), self=tensor('B N'),\n"
        "      other=tensor('N', 'self'), alpha=number(1, 2), out=out('self'))\n"
        "def sub(self, other, alpha): return self - alpha * other\n"
    )
    report = mindtorch_npu.check("aclnnSub", golden=file, **OPTIONS)
    assert report.passed
    assert "aclnnSub" not in report.assumed


def test_the_environment_is_as_before():
    mindtorch_npu.check("aclnnSub", golden=aclnnSub, **OPTIONS)
    assert "MINDTORCH_GOLDEN" not in os.environ


def test_a_dtype_that_nobody_claims_selects_nothing():
    with pytest.raises(NothingSelectedError, match="no case matches"):
        mindtorch_npu.check("aclnnSub", golden=aclnnSub, simulator=True, dtypes=("complex128",))


def test_declarations_of_one_module_do_not_reach_the_built_in_rows():
    @spec("aclnnNothingOfOurs", Rule("composite", "none"), x=tensor("N"), a=number(1), y=out("x"))
    def nothing(x, a):
        return x

    from mindtorch_npu.spec import ROWS

    assert ROWS.pop("aclnnNothingOfOurs").family == "custom"
