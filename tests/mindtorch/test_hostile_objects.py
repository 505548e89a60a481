"""What Python lets be copied, consumed twice or used when all ends works or is refused by name."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import mindtorch
from mindtorch.utils import dlpack

COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("device", ["cpu", "npu"])
def test_a_generator_s_copy_goes_on_from_its_state(how, device):
    generator = mindtorch.Generator(device).manual_seed(7)
    mindtorch.rand(3, generator=generator, device=device)
    other = COPIES[how](generator)
    expected = mindtorch.rand(5, generator=generator, device=device)
    assert mindtorch.rand(5, generator=other, device=device).tolist() == expected.tolist()


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("name", ["Stream", "Event"])
def test_handles_have_one_owner(how, name):
    with pytest.raises(TypeError, match=f"{name}: it is of this process"):
        COPIES[how](getattr(mindtorch.npu, name)())


def test_a_generator_s_state_is_looked_at():
    generator = mindtorch.Generator()
    state = generator.get_state()
    raw = state.numpy().copy()
    raw[16:24] = np.frombuffer(np.uint64(1 << 40).tobytes(), np.uint8)
    with pytest.raises(RuntimeError, match="Invalid mt19937 state"):
        generator.set_state(mindtorch.from_numpy(raw))
    with pytest.raises(RuntimeError, match="5056"):
        generator.set_state(state[:-1])
    with pytest.raises(TypeError, match="ByteTensor"):
        generator.set_state(state.float())


def test_a_capsule_is_consumed_once():
    x = mindtorch.arange(4.0)
    capsule = dlpack.to_dlpack(x)
    y = dlpack.from_dlpack(capsule)
    y[0] = 9
    assert x[0] == 9
    with pytest.raises(RuntimeError, match="only once"):
        dlpack.from_dlpack(capsule)


@pytest.mark.parametrize("bad", [None, 3, "x", object()])
def test_what_is_no_capsule_is_refused_as_torch_does(bad):
    with pytest.raises(RuntimeError, match="invalid capsule"):
        mindtorch.from_dlpack(bad)


def test_numpy_reads_tensors_by_the_protocol():
    assert np.from_dlpack(mindtorch.arange(3.0)).tolist() == [0, 1, 2]
    assert not mindtorch.ones(1).is_conj()
    assert not mindtorch.ones(1).is_neg()


AT_EXIT = """
import builtins, mindtorch
class Holder:
    def __init__(self): self.x = mindtorch.ones(5).npu()
    def __del__(self):
        try: print(self.x + 1)
        except Exception as error: print(type(error).__name__)
builtins.kept = [Holder()]
builtins.kept.append(builtins.kept)
"""


def test_a_tensor_used_when_the_interpreter_ends_is_refused_by_name():
    done = subprocess.run(
        [sys.executable, "-c", AT_EXIT], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "ClosedHandleError"), done.stderr
