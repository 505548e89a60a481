"""torch.npu.set_deterministic_level reaches the options that torch_npu's document names."""

import numpy as np
import pytest

import mindtorch
from aclnn_bindings import bundled_simulator
from mindtorch._backends.npu.runtime import cann

pytestmark = pytest.mark.skipif(bundled_simulator() is None, reason="no simulator was built")
OPTIONS = ("ACL_OPT_DETERMINISTIC", "ACL_OPT_STRONG_CONSISTENCY")


def options() -> tuple[int, ...]:
    values = []
    for name in OPTIONS:
        value = np.full(1, -1, np.int64)
        cann().function("aclrtGetSysParamOpt")(cann().runtime.constant(name, -1), value)
        values.append(int(value[0]))
    return tuple(values)


@pytest.fixture(autouse=True)
def as_before():
    yield
    mindtorch.npu.set_deterministic_level(0)


@pytest.mark.parametrize(("level", "values"), [(0, (0, 0)), (1, (1, 0)), (2, (1, 1))])
def test_a_level_sets_both_options(level, values):
    mindtorch.npu.set_deterministic_level(level)
    assert options() == values


def test_algorithms_asked_for_later_replace_the_level():
    mindtorch.npu.set_deterministic_level(2)
    mindtorch.use_deterministic_algorithms(True)
    assert options() == (1, 0)
    mindtorch.use_deterministic_algorithms(False)
    assert options() == (0, 0)


def test_other_levels_are_refused():
    with pytest.raises(ValueError, match="level must be 0, 1 or 2, got 3"):
        mindtorch.npu.set_deterministic_level(3)
