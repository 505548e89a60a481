"""Kernels of state: results equal a reference, and what they refuse."""

import numpy as np
from numpy_harness import Array, Ops, Out


def test_detectors_tell_faults_from_alarms(nops: Ops) -> None:
    def silent(value: float, detect: int, step: int = 0) -> list[Array]:
        one = np.array([value], np.float32)
        return nops(
            "aclnnSilentCheck",
            one,
            [
                Out((3,), given=np.ones(3, np.float32)),
                Out((3,), given=np.array([1, 0, 2], np.float32)),
                Out((1,), "int64", np.array([step])),
                1,
                100.0,
                50.0,
                10.0,
                5.0,
                detect,
                Out((1,), "int32"),
            ],
        )

    grad, seen, step, result = silent(3.0, 1)
    assert (grad.tolist(), seen.tolist(), step[0], result[0]) == ([1] * 3, [3, 3, 3], 1, 0)
    assert silent(50.0, 1)[3][0] == 2  # beyond the second limit
    assert silent(15.0, 1, 4)[3][0] == 2  # no limit, but a jump of seven times the range
    grad, _, step, result = silent(np.nan, 2)
    assert (grad.tolist(), step[0], result[0]) == ([0] * 3, 0, 1)
    average = [np.array([v], np.float32) for v in (9.0, 0.0)]
    out = nops(
        "aclnnSilentCheckV2",
        *average,
        [
            Out((1,), given=np.ones(1, np.float32)),
            Out((2, 3), given=np.ones((2, 3), np.float32)),
            Out((1,), "int64", np.array([1])),
            (2, 2),
            (3, 1),
            (1,),
            4.0,
            2.0,
            0.5,
            3,
            Out((1,), "int32"),
        ],
    )
    assert out[3][0] == 1  # 9 is beyond 4 times the average, which is 1 / (1 - 0.5)
    np.testing.assert_array_equal(out[1], [[1, 0, 0], [1, 0, 0]])
