"""A named operator is checked with what it is made of: rows that it calls, backward kernels."""

import subprocess
import sys

import pytest
from mindtorch_npu.conformance.cases.decomposition import stored, traced, with_parts

from aclnn_bindings.install.library import bundled_simulator
from mindtorch.ops import OPS

needs_simulator = pytest.mark.skipif(
    bundled_simulator() is None, reason="the simulator is not built"
)


def test_parts_are_rows_and_bring_their_backward_kernels():
    assert {n for name, parts in stored().items() for n in (name, *parts)} <= set(OPS)
    kernels = ["aclnnLayerNormBackward", "aclnnGeluBackwardV2", "aclnnGluBackward", "aclnnAddmm"]
    assert with_parts(["layer_norm"], kernels) == (
        "layer_norm", "native_layer_norm", "_layer_norm_backward", "aclnnLayerNormBackward"
    )  # fmt: skip
    assert with_parts(["gelu"], kernels) == ("gelu", "gelu_backward", "aclnnGeluBackwardV2")
    assert with_parts(["glu"], kernels)[-1] == "aclnnGluBackward"
    assert with_parts(["add"], kernels) == ("add",)


def test_operator_that_a_row_calls_brings_the_row():
    assert "_softmax" in with_parts(["aclnnSoftmax"])
    assert "add" in with_parts(["aclnnInplaceAdd"])


@needs_simulator
@pytest.mark.parametrize("name", ["layer_norm", "cross_entropy", "conv2d", "max_pool2d", "argsort"])
def test_stored_parts_are_those_that_samples_call(name):
    assert stored()[name] == traced(OPS[name])


@needs_simulator
def test_defect_of_a_kernel_fails_the_operator_made_of_it(monkeypatch, tmp_path):
    monkeypatch.setenv("ACLSIM_FAULTS", "layernorm:long@600")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    words = [sys.executable, "-m", "mindtorch_npu", "check", "layer_norm", "--simulator", "--form",
             "functional", "--dtype", "float32", "--jobs", "1"]  # fmt: skip
    alone = subprocess.run([*words, "--alone"], capture_output=True, text=True, check=False)
    whole = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (alone.returncode, whole.returncode) == (5, 1)
    assert "layernorm:long@600" in alone.stderr, "it calls no aclnnLayerNorm"
    assert "(--alone skips them): native_layer_norm" in whole.stderr
    assert "row length" in whole.stdout
