"""l0n0lacl, a client of custom operators that others wrote, unmodified on the simulator.

It needs CANN's own Python module `acl`, of which this file has what it calls.
"""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from tests import custom_packages
from tests.custom_packages import ADD
from tests.simulator import compiled
from tests.simulator.test_custom_operators import PROGRAM_KERNELS, environment

ACL = """
import ctypes, os, types
_lib = ctypes.CDLL(os.environ["ASCEND_HOME_PATH"] + "/lib64/libascendcl.so")
_lib.aclGetRecentErrMsg.restype = ctypes.c_char_p
_lib.aclDataTypeSize.restype = ctypes.c_size_t
_P, _S, _I = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int32
def init(path=None): return _lib.aclInit(None)
def finalize(): return _lib.aclFinalize()
def app_log(level, text): pass
def get_recent_err_msg(): return (_lib.aclGetRecentErrMsg() or b"").decode()
def data_type_size(dtype): return _lib.aclDataTypeSize(dtype)
def get_version(): return 1, 0, 0, 0
def get_device_capability(device, what):
    value = ctypes.c_int64()
    return value.value, _lib.aclGetDeviceCapability(device, what, ctypes.byref(value))
def _malloc(size, policy=0):
    address = _P()
    code = _lib.aclrtMalloc(ctypes.byref(address), _S(size), policy)
    return address.value, code
def _device():
    device = _I()
    return device.value, _lib.aclrtGetDevice(ctypes.byref(device))
def _memcpy(to, room, source, size, kind):
    return _lib.aclrtMemcpy(_P(to), _S(room), _P(source), _S(size), kind)
rt = types.SimpleNamespace(
    set_device=_lib.aclrtSetDevice, reset_device=_lib.aclrtResetDevice,
    reset_device_force=_lib.aclrtResetDeviceForce, get_device=_device, malloc=_malloc,
    free=lambda address: _lib.aclrtFree(_P(address)), memcpy=_memcpy,
    synchronize_stream=lambda stream: _lib.aclrtSynchronizeStream(_P(stream)),
)
"""
CLIENT = """
import numpy as np
from l0n0lacl import 算子运行器
x = np.arange(6, dtype=np.float32).reshape(2, 3)
out = 算子运行器("AddCustom")(x, x, np.zeros_like(x))
print(out[2])
"""


def test_l0n0lacl_calls_a_custom_operator(tmp_path: Path) -> None:
    if importlib.util.find_spec("l0n0lacl") is None:
        pytest.skip("l0n0lacl is not installed")
    custom_packages.package(tmp_path / "opp/vendors/mine", ADD)
    (tmp_path / "opp/vendors/config.ini").write_text("load_priority=mine\n")
    (tmp_path / "acl.py").write_text(ACL)
    (tmp_path / "kernels.py").write_text(PROGRAM_KERNELS)
    root = compiled.install()
    environ = environment(tmp_path, f"AddCustom={tmp_path / 'kernels.py'}:AddCustom")
    del environ["ASCEND_CUSTOM_OPP_PATH"]
    environ |= {
        "ASCEND_HOME_PATH": str(root), "ASCEND_OPP_PATH": str(tmp_path / "opp"),
        "LD_LIBRARY_PATH": str(root / "lib64"),
        "PYTHONPATH": f"{tmp_path}:{environ.get('PYTHONPATH', '')}",
    }  # fmt: skip
    done = subprocess.run([sys.executable, "-c", CLIENT], capture_output=True, text=True,
                          check=False, env=environ, timeout=60)  # fmt: skip
    assert done.stdout.strip() == "[[ 0.  2.  4.]\n [ 6.  8. 10.]]", done.stderr
