"""Every number that a derived operator's header takes has two values in its calls, or a reason."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from mindtorch_npu.conformance.operators.derived import DerivedOperator
from mindtorch_npu.conformance.operators.find import subject
from mindtorch_npu.conformance.run.subject import UnknownSubjectError

import aclnn_bindings
from aclnn_bindings.call.specs import TensorSpec
from aclnn_bindings.install.library import bundled_simulator
from mindtorch.npu import install

pytestmark = pytest.mark.skipif(bundled_simulator() is None, reason="the simulator is not built")

# What a row's call states as a constant: the mode of products, and that null has tensors instead.
CONSTANT = {"cubeMathType", "bias", "gamma", "beta", "weight", "weightOptional", "biasOptional"}
# Rows have no argument for these.
UNVARIED = {("aclnnIndexPutImpl", "unsafe"), ("aclnnSort", "stable")}


def operators() -> Iterator[DerivedOperator]:
    cann = aclnn_bindings.open(simulator=True)
    install.use(cann)
    for name in cann.declarations.ops:
        try:
            what = subject(name, cann.declarations)
        except UnknownSubjectError:
            continue
        if isinstance(what, DerivedOperator):
            yield what


def values(operator: DerivedOperator) -> dict[str, set[str]]:
    """What each parameter that is no tensor gets, over the operator's calls."""
    seen: dict[str, set[str]] = defaultdict(set)
    for sample in operator.samples():
        for name, value in (operator.asked(sample) or {}).items():
            if not _is_tensor(value):
                seen[name].add(repr(value))
    return seen


def _is_tensor(value: Any) -> bool:
    return isinstance(value, TensorSpec) or (
        isinstance(value, tuple) and any(isinstance(v, TensorSpec) for v in value)
    )


def test_no_number_of_a_header_is_always_the_same():
    same = {
        (operator.name, name)
        for operator in operators()
        for name, texts in values(operator).items()
        if len(texts) == 1 and name not in CONSTANT
    }
    assert same == UNVARIED
