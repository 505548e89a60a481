"""TestSpec files of the vendor's kit give references."""

import sys
import types
from types import SimpleNamespace

import numpy as np
import pytest
from mindtorch_npu.conformance.operators import golden_files
from mindtorch_npu.conformance.operators.kit_specs import SpecReference, classes, kit_spec
from mindtorch_npu.judge.precision import numpy_dtype
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


def spec_of(**members):
    members = {"golden": "torch.sub", **members}
    return SpecReference("aclnnSub", type("AclnnSubTestSpec", (), members))


def test_inputs_are_changed_and_keep_their_number():
    def sorted_inputs(tensors):
        return [np.sort(tensors[0]), tensors[1]]

    spec = spec_of(customize_inputs=staticmethod(sorted_inputs))
    first, second = spec.changed([np.array([3.0, 1.0]), np.array([5.0, 4.0])])
    assert (first.tolist(), second.tolist()) == ([1.0, 3.0], [5.0, 4.0])
    with pytest.raises(DeclarationError, match="must return a list of 2 tensors"):
        spec_of(customize_inputs=lambda tensors: tensors[0]).changed([np.ones(2), np.ones(2)])


def test_comparison_and_second_witness_are_the_class_s_own():
    def near(got, golden):
        return bool(np.abs(got - golden).max() < 1), "largest difference below 1"

    spec = spec_of(compare=near, third_party={"tensorflow": Made, "torch": "torch.sub"})
    assert spec.agrees(np.array([1.5]), np.array([1.0])) == (True, "largest difference below 1")
    assert spec_of(compare=lambda got, golden: False).agrees(1.0, 1.0) == (False, "")
    assert spec.witness(VALUES)[0].tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(DeclarationError, match="third_party has none of torch"):
        spec_of(third_party={"paddle": Made}).witness(VALUES)
    assert kit_spec(spec.bound(SUB)) is spec
    assert kit_spec(by_name) is None


def test_a_file_with_a_class_declares_references(tmp_path, monkeypatch):
    file = tmp_path / "specs.py"
    file.write_text("class AclnnSubTestSpec:\n    golden = 'torch.sub'\n")
    monkeypatch.setenv("MINDTORCH_GOLDEN", str(file))
    assert golden_files.loaded().sources["aclnnSub"] == str(file)


def test_bfloat16_goes_to_torch_and_back(monkeypatch):
    monkeypatch.undo()
    pytest.importorskip("torch")
    array = np.array([1.5, -2.25], numpy_dtype("bfloat16"))
    (back,) = spec_of(customize_inputs=lambda tensors: [-tensors[0]]).changed([array])
    assert back.dtype == array.dtype
    assert back.tolist() == [-1.5, 2.25]


def test_tolerance_names_a_standard_and_its_numbers_for_each_dtype():
    spec = spec_of(tolerance={
        "float16": {"standard": "mix_tolerance"}, "int32": {"standard": "binary_equal"},
        "torch.float32": {"standard": "close", "rtol": 0.5, "ptol": 0.25, "atol": 2.0},
    })  # fmt: skip
    names = {dtype: name for dtype, (name, _) in spec.tolerance.items()}
    assert names == {"float16": "mixed", "int32": "binary", "float32": "close"}
    numbers = spec.tolerance["float32"][1]
    assert (numbers.relative, numbers.share, numbers.absolute) == (0.5, 0.25, 2.0)
    with pytest.raises(DeclarationError, match="no standard is called 'cloes'"):
        spec_of(tolerance={"float16": {"standard": "cloes"}})
