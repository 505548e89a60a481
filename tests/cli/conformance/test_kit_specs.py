"""TestSpec files of the vendor's kit give references."""

import sys
import types
from types import SimpleNamespace

import numpy as np
import pytest
from mindtorch_npu.conformance.operators.kit_specs import SpecReference, classes
from mindtorch_npu.spec.errors import DeclarationError

from aclnn_bindings.interface import catalog

SUB = catalog.load(catalog.versions()[-1]).ops["aclnnSub"]
VALUES = {"self": np.full(3, 5.0), "other": np.full(3, 2.0), "alpha": 2.0}


@pytest.fixture(autouse=True)
def torch(monkeypatch):
    """A stand-in of torch whose tensors are arrays, so that torch need not be installed."""
    module = types.ModuleType("torch")
    module.from_numpy = lambda array: array
    module.sub = lambda a, b, c: a - c * b
    monkeypatch.setitem(sys.modules, "torch", module)


def by_name(self, other, alpha, use_torch, **_):
    assert use_torch is True
    return [self - alpha * other]


class Made:
    def __call__(self, first, other, alpha):
        return [first - alpha * other]


@pytest.mark.parametrize("golden", ["torch.sub", by_name, staticmethod(by_name), Made])
def test_each_form_of_a_golden_gives_the_results(golden):
    spec = type("AclnnSubTestSpec", (), {"golden": golden})
    (result,) = SpecReference("aclnnSub", spec).bound(SUB)(**VALUES)
    assert result.tolist() == [1.0, 1.0, 1.0]


def test_classes_are_found_by_the_list_and_by_their_names():
    module = types.ModuleType("kit")
    module.Named, module.AclnnAbsTestSpec = Made, Made
    vars(module)["__spec__"] = {"aclnnSub": "Named"}
    assert dict(classes(module)) == {"aclnnSub": Made, "aclnnAbs": Made}
    vars(module)["__spec__"] = {"aclnnSub": "Missing"}
    with pytest.raises(DeclarationError, match="'Missing' for aclnnSub: no such class"):
        list(classes(module))


def test_a_class_without_golden_is_refused():
    with pytest.raises(DeclarationError, match="has no golden"):
        SpecReference("aclnnSub", SimpleNamespace)
