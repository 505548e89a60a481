"""A wrong result of an ACLNN operator is a failure, though no row of torch can speak of it."""

from mindtorch_npu.conformance.cases.case import Case
from mindtorch_npu.conformance.run.laws import run

from mindtorch.ops.samples import Arg, Sample


class Operator:
    """What laws ask an ACLNN operator for, with a law that finds it wrong."""

    name, calls, op, declaration = "aclnnFoo", ("aclnnFoo",), None, None

    def samples(self):
        return [Sample((), {"x": Arg((2,), "float32")})]

    def requirement(self, dtype):
        return None

    def laws(self):
        return {"functional": self.law}

    def law(self, trial):
        return trial.result("FAIL", reason="wrong")


def test_a_failure_of_an_operator_without_a_row_stays_a_failure():
    result, _ = run(Operator(), Case("aclnnFoo", "functional", 0), "cpu", 0)
    assert (result.verdict, result.reason) == ("FAIL", "wrong")
