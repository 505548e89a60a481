"""The scan of a device's memory: bad bits are found where it reaches, and nowhere else."""

import json
import os
import subprocess
import sys

import pytest
from mindtorch_npu.conformance.record import votes

from aclnn_bindings.install.library import bundled_simulator

SCANS = """
import json, time
import aclnn_bindings
from mindtorch.npu import install
from mindtorch_npu.conformance.cases.case import SOAK, Case
from mindtorch_npu.conformance.run.soak import soak
install.use(aclnn_bindings.open(simulator=True))
case = Case("memory", SOAK, detail="int32/48")
for device in ("npu:0", "npu:1"):
    notes = []
    request = {"seconds": 20}
    result = soak(case, 0, device, request, lambda kind, data: notes.append(data))
    print(json.dumps([result.verdict, result.reason, notes]))
"""


@pytest.mark.skipif(bundled_simulator() is None, reason="the simulator is not built")
def test_memory_that_does_not_keep_what_is_written_is_found_on_its_device():
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "ACLSIM_DEVICES": "2",
               "ACLSIM_FAULTS": "npu1/memory:stuck@30"}  # fmt: skip
    words = [sys.executable, "-c", SCANS]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=True)
    right, wrong = map(json.loads, done.stdout.splitlines())
    assert right[0] == "PASS"
    assert right[2][0]["bytes"] >= 40 << 20
    assert wrong[0] == "FAIL"
    note = wrong[2][0]
    assert (note["wrong"], note["launches"] > 1) == (0, True)  # alike in every try: it is stuck
    assert votes.one_bit(note["differences"]) == "bit 4, 0 → 1"
