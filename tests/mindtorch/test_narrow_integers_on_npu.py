"""What an operator of CANN does not take is computed in a wider dtype, and given as it was."""

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
    "filled": lambda x: x.index_fill(1, (x[0] * 0).long()[:2], 7),
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


WIDENED = {
    "bfloat16": lambda lib, x: (x.lgamma(), x.digamma(), lib.mvlgamma(x + 2, 2)),
    "bool": lambda lib, x: (
        lib.clamp_min(x, x.flip(0)), lib.nn.functional.unfold(x[None, None], 2),
        lib.heaviside(x, x.flip(0)), x.index_fill(1, x[0].long()[:2], True),
    ),
    "int64": lambda lib, x: (lib.heaviside(x, x + 1), lib.heaviside(x.int(), x.int())),
    "int8": lambda lib, x: (lib.heaviside(x, x + 1), lib.nn.functional.max_pool2d(x[None], 2)),
    "complex64": lambda lib, x: (
        lib.logical_not(x), lib.view_as_real(x.clone().logical_not_()), lib.sinc(x).abs().ge(1),
    ),
}  # fmt: skip


@pytest.mark.parametrize("dtype", WIDENED)
def test_what_no_operator_takes_is_computed_wider(dtype):
    def run(lib):
        x = lib.tensor([[3.0, 0, 7], [1, 0.5, 0]]).to(getattr(lib, dtype))
        return [v.cpu() for v in WIDENED[dtype](lib, x.to("npu") if lib is mindtorch else x)]

    agree(run)


def test_bilinear_interpolation_has_a_gradient_in_bfloat16():
    def run(lib):
        x = lib.ones(1, 1, 2, 3, dtype=lib.bfloat16).to("npu" if lib is mindtorch else "cpu")
        y = lib.nn.functional.interpolate(x.requires_grad_(), scale_factor=2, mode="bilinear")
        y.sum().backward()
        return [y.detach().cpu(), x.grad.cpu()]

    agree(run)


def test_results_without_elements_need_no_operator():
    def run(lib):
        empty = lib.zeros(0).to("npu" if lib is mindtorch else "cpu")
        x = lib.ones(1, 1, 3, 4).to(empty.device)
        pooled = lib.nn.functional.adaptive_avg_pool2d(x, 0)
        return [v.cpu() for v in (empty.roll(1, 1), lib.cat([empty, empty], 1), pooled)]

    agree(run)
