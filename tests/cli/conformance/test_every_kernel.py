"""Every kernel of the simulator gives what its reference does, over what `check` varies."""

import pytest
from mindtorch_npu.conformance.cases.cases import CaseFilter
from mindtorch_npu.conformance.cases.shard import CaseShard
from mindtorch_npu.conformance.run import engine
from mindtorch_npu.conformance.run.pool import Setup

from aclnn_bindings.install.library import bundled_simulator

pytestmark = pytest.mark.skipif(bundled_simulator() is None, reason="the simulator is not built")
PARTS = 24  # the first runs with every change, the others at night


@pytest.mark.sampled(PARTS)
@pytest.mark.parametrize("part", range(1, PARTS + 1))
def test_kernels_equal_their_references(tmp_path, part):
    path = tmp_path / "run.jsonl"
    setup = Setup("npu:0", None, True, str(path), 120.0, second_oracle=False)
    request = engine.RunRequest(
        (), CaseFilter(), setup, every=True, shard=CaseShard(part, PARTS), jobs=2
    )
    results = list(engine.begin(request, path).results())
    assert [(r.case, r.reason) for r in results if r.failing] == []
    assert len({r.op for r in results if r.verdict == "PASS"}) > 800
