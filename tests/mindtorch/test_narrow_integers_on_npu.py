"""Integers that an operator of CANN does not take are computed in int64, and given as they were."""

import pytest

import mindtorch
from tests.mindtorch.agreement import agree

CALLS = {
    "max": lambda x: x.max(1),
    "min": lambda x: x.min(0, keepdim=True),
    "max of all": lambda x: x.max(),
    "sign": lambda x: x.sign(),
    "neg": lambda x: -x,
    "remainder": lambda x: x % 3,
    "remainder of two": lambda x: x % (x // 2 + 1),
    "cummax": lambda x: x.cummax(1),
    "amax": lambda x: x.amax(0),
    "sort": lambda x: x.sort(1),
    "topk": lambda x: x.topk(2)[0],
    "in place": lambda x: x.clone().neg_().sign_().remainder_(2),
    "strided": lambda x: (-x.T, x[:, 1:].max(0).values),
    "empty": lambda x: -x[:0],
    "product": lambda x: (x @ x.T, x @ x[0], x[0] @ x[0], x[:, 0] @ x, x[None] @ x.T),
}


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("name", CALLS)
def test_narrow_integers_are_computed_as_on_cpu(name, dtype):
    def run(lib):
        x = lib.tensor([[3, 100, 7], [1, 7, 0]], dtype=getattr(lib, dtype))
        result = CALLS[name](x.to("npu") if lib is mindtorch else x)
        values = result if isinstance(result, tuple) else (result,)
        return [v.cpu().contiguous() for v in values]

    agree(run)
