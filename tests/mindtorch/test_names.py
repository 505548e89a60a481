"""The import forms and questions that model code opens with."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mindtorch as torch

ROOT = Path(__file__).resolve().parent.parent.parent

FORMS = (
    "import mindtorch.nn as nn; nn.Linear(1, 1)",
    "import mindtorch.nn.functional as F; F.relu",
    "from mindtorch import nn, optim, Tensor; optim.SGD",
    "from mindtorch.autograd import Function; Function.apply",
    "from mindtorch.utils.data import DataLoader, Dataset",
    "from mindtorch.utils.checkpoint import checkpoint",
    "import mindtorch.distributed as dist; assert dist.is_available()",
    "import mindtorch.multiprocessing as mp; mp.spawn",
    "import mindtorch.backends.cudnn as cudnn; cudnn.benchmark = True",
    "from mindtorch.cuda.amp import autocast, GradScaler",
    "from mindtorch.amp import autocast, GradScaler",
    "from mindtorch.optim.lr_scheduler import StepLR",
    "from mindtorch.nn.utils import clip_grad_norm_",
    "from mindtorch import Tensor, no_grad, float32, randn, cat",
    "import mindtorch.linalg as LA; LA.norm",
    "from mindtorch.types import Number, Device",
    "from mindtorch.testing import assert_close",
    "import mindtorch.jit; mindtorch.jit.is_scripting()",
)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("form", FORMS)
def test_import_form_works_in_a_fresh_interpreter(form):
    done = subprocess.run([sys.executable, "-c", form], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_devices_that_are_not_there_say_so():
    assert not torch.cuda.is_available()
    assert torch.cuda.device_count() == 0
    assert not torch.backends.mps.is_available()
    assert not torch.xpu.is_available()
    assert not torch.distributed.is_initialized()
    with pytest.raises(AssertionError, match="not compiled with CUDA") as caught:
        torch.cuda.synchronize()
    assert (
        "torch.npu has the same"
        in getattr(caught.value, "__notes__", ["torch.npu has the same"])[0]
    )
    with pytest.raises(AssertionError, match="CUDA"):
        torch.ones(1).cuda()


def test_compile_runs_eagerly():
    @torch.compile
    def double(x):
        return x * 2

    assert double(torch.ones(1)).tolist() == [2.0]
    assert not torch.compiler.is_compiling()


def test_a_stance_is_a_statement_a_context_and_a_decorator():
    torch.compiler.set_stance("default")
    with torch.compiler.set_stance("force_eager"):
        assert torch.compiler.set_stance("eager_on_recompile")(lambda: 3)() == 3
    with pytest.raises(RuntimeError, match="force_backend"):
        torch.compiler.set_stance("force_eager", force_backend="eager")


def test_loggers_of_the_compiler_take_levels_and_tell_nothing(caplog):
    import logging

    import mindtorch._logging as torch_logging

    torch_logging.set_logs(recompiles_verbose=True, modules={"torch.of_this_test": logging.ERROR})
    assert logging.getLogger("torch.of_this_test").level == logging.ERROR
    logger = torch_logging.getArtifactLogger("torch.of_this_test", "guards")
    for _ in range(2):
        torch_logging.warning_once(logger, "once")
    torch_logging.set_logs()
    assert not caplog.records


def test_assert_close_accepts_and_refuses():
    torch.testing.assert_close(torch.ones(2), torch.ones(2) + 1e-7)
    torch.testing.assert_close({"a": [1.0, 2]}, {"a": [1.0, 2]})
    with pytest.raises(AssertionError, match=r"Mismatched elements: 1 / 2 \(50\.0%\)"):
        torch.testing.assert_close(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 3.0]))
    with pytest.raises(AssertionError, match="dtype"):
        torch.testing.assert_close(torch.ones(1), torch.ones(1, dtype=torch.float64))


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no_such_name"):
        torch.no_such_name  # noqa: B018
    with pytest.raises(AttributeError, match="no_such_name"):
        torch.Tensor.no_such_name  # noqa: B018
    with pytest.raises(AttributeError, match="no_such_name"):
        torch.ones(1).no_such_name  # noqa: B018
    assert not hasattr(torch, "no_such_name")


NUMBERS_OF_NUMPY = (
    (np.float64(1.5), 1.5), (1.5, np.float64(1.5)), (np.float32(1.5), 1.5), (np.int32(2), 2),
    (np.bool_(True), True), (np.bool_(True), False), (np.float64(1.5), 1), (np.int64(2), 3),
    ([np.float64(1.5)], [1.5]), (np.complex64(1j), 1j),
)  # fmt: skip


@pytest.mark.parametrize(("actual", "expected"), NUMBERS_OF_NUMPY)
def test_numbers_of_numpy_are_compared_as_pythons(actual, expected):
    oracle = pytest.importorskip("torch", reason="the oracle is torch 2.13")
    said = []
    for library in (oracle, torch):
        try:
            said.append(library.testing.assert_close(actual, expected))
        except Exception as error:
            said.append((type(error).__name__, str(error)))
    assert said[0] == said[1]
