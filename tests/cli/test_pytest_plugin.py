"""Every case of an operator is a pytest item with its id."""

pytest_plugins = ("pytester",)

MODULE = """
from mindtorch_npu.pytest_plugin import conformance


def aclnnSub(self, other, alpha):
    return self - alpha * other {more}


@conformance("aclnnSub", golden=aclnnSub, simulator=True, dtypes=("float32",))
def test_sub(conformance_case): ...
"""


def run(pytester, more="", *options):
    pytester.makepyfile(test_ops=MODULE.format(more=more))
    return pytester.runpytest_subprocess("-p", "mindtorch_npu.pytest_plugin", "-q", *options)


def test_each_case_is_an_item_that_k_selects(pytester):
    outcome = run(pytester, "", "-k", "reversed", "-v")
    counts = outcome.parseoutcomes()
    assert counts["passed"] > 0
    assert counts["deselected"] > 5
    # pytest warns of an editable install's finder, which is imported before it rewrites asserts.
    assert counts.keys() <= {"passed", "deselected", "warnings"}


def test_a_failing_case_shows_its_cause(pytester):
    outcome = run(pytester, "+ 1", "-x")
    assert outcome.parseoutcomes()["failed"] == 1
    outcome.stdout.fnmatch_lines(["*again: mindtorch-npu check aclnnSub --case*"])
