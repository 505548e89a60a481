"""Values that are easily got wrong in silence agree with torch on cpu and npu, or are refused."""

import pytest

import mindtorch

oracle = pytest.importorskip("torch", reason="torch 2.13 is the oracle")

NAN, INF = float("nan"), float("inf")


def half(t, d):
    return t.tensor([1.0, NAN, 0.0], dtype=t.bfloat16, device=d)


def image(t, d):
    pixels = t.arange(36.0, device=d).reshape(1, 1, 6, 6)
    return pixels.masked_fill(pixels == 0, INF)


def slope_of(function, values, t, d):
    x = t.tensor(values, device=d, requires_grad=True)
    result = function(x)
    weights = t.arange(1.0, result.numel() + 1, device=d).reshape(result.shape)
    (result * weights).sum().backward()
    return x.grad


def slope(name, values):
    arguments = (0,) if name == "cumprod" else ()
    return lambda t, d: slope_of(lambda x: getattr(x, name)(*arguments), values, t, d)


CALLS = {
    "sort of NaN in bfloat16": lambda t, d: half(t, d).sort().values.float(),
    "argsort of NaN in bfloat16": lambda t, d: half(t, d).argsort(),
    "topk of NaN in bfloat16": lambda t, d: half(t, d).topk(2).values.float(),
    "kthvalue of NaN in bfloat16": lambda t, d: half(t, d).kthvalue(1).values.float(),
    "one infinity in a pooled image": lambda t, d: t.nn.functional.adaptive_avg_pool2d(
        image(t, d), 3
    ),
    "NaN in bucketize": lambda t, d: t.bucketize(
        t.tensor([NAN, 1.0, 3.0], device=d), t.tensor([1.0, 2.0], device=d)
    ),
    "NaN and infinity in isin": lambda t, d: t.isin(
        t.tensor([1.0, NAN, INF], device=d), t.tensor([NAN, INF, 2.0], device=d)
    ),
    "integers among fractions": lambda t, d: t.isin(
        t.tensor([1, 2], device=d), t.tensor([1.5, 2.0], device=d)
    ),
    "real numbers are their own conjugates": lambda t, d: t.tensor(
        (lambda x: t.conj_physical(x) is x and x.conj_physical_() is x)(t.ones(2, device=d))
    ),
    "logsumexp of integers": lambda t, d: t.logsumexp(t.tensor([1, 2], device=d), 0),
    "square of bool": lambda t, d: t.square(t.tensor([True, False], device=d)),
    "hypot promotes": lambda t, d: t.hypot(
        t.tensor(3.0, device=d), t.tensor(4, dtype=t.uint8, device=d)
    ),
    "clamp by a tensor promotes": lambda t, d: t.tensor([1, 2], device=d).clamp(
        t.tensor(0.5, device=d)
    ),
    **{
        f"derivative of {name} of {values}": slope(name, values)
        for name in ("prod", "cumprod")
        for values in (
            (1.0, NAN, 2.0),
            (0.0, NAN, 2.0),
            (NAN, 0.0, 3.0),
            (2.0, 0.0, 3.0, NAN),
            (1.0, 0.0, NAN, 0.0),
            (2.0, 3.0, 0.0, 5.0, 0.0, 7.0),
            (3.0, INF, 0.0),
        )
    },
    "derivative of rows of prod": lambda t, d: slope_of(
        lambda x: x.prod(1), [[1.0, NAN, 2.0], [0.0, 2.0, 3.0], [0.0, 0.0, 1.0]], t, d
    ),
    "derivative of columns of cumprod": lambda t, d: slope_of(
        lambda x: x.cumprod(0), [[1.0, 0.0, 2.0], [0.0, 2.0, 3.0], [4.0, 0.0, 1.0]], t, d
    ),
    "derivative of distances that count": lambda t, d: slope_of(
        lambda x: t.cdist(x, t.tensor([[1.0, 2.0], [0.0, 3.0]], device=d), 0.0),
        [[1.0, 5.0]],
        t,
        d,
    ),
    "negative weights": lambda t, d: t.multinomial(t.tensor([-1.0, 2.0], device=d), 1),
    "infinite weights": lambda t, d: t.multinomial(t.tensor([INF, 2.0], device=d), 1),
    "weights of zero": lambda t, d: t.multinomial(t.tensor([0.0, 0.0], device=d), 1, True),
}


def outcome(torch, device, call):
    try:
        result = call(torch, device)
    except RuntimeError as error:
        return str(error)
    return str(result.dtype), str(result.cpu().tolist())


@pytest.mark.parametrize("device", ["cpu", "npu"])
@pytest.mark.parametrize("name", CALLS)
def test_the_value_or_the_refusal_is_torch_s(name, device):
    ours = outcome(mindtorch, device, CALLS[name])
    assert ours == outcome(oracle, "cpu", CALLS[name])


SMOOTH = {
    **dict.fromkeys(("erfc", "special.ndtr", "special.log_ndtr", "special.erfcx"), (-9, 9)),
    **dict.fromkeys(("asin", "acos", "erfinv"), (-1, 1)),
    **dict.fromkeys(("lgamma", "tan"), (0.1, 30)),
    "special.ndtri": (0, 1),
    **dict.fromkeys(("atan2", "hypot", "logaddexp", "logaddexp2"), (-20, 20)),
}
SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.0, -2.5, 0.5, 1e-30, 1e-45, -1e-40, 8.0, 3e38, INF, -INF, NAN)


@pytest.mark.parametrize("name", SMOOTH)
def test_functions_of_float32_are_those_of_float64_rounded(name):
    """Within one unit in the last place; of values where they are infinite or unknown, torch's."""
    low, high = SMOOTH[name]
    two = name in ("atan2", "hypot", "logaddexp", "logaddexp2")

    def value(t, x):
        *spaces, last = name.split(".")
        space = t.special if spaces else t
        return getattr(space, last)(*((x, x.flip(0)) if two else (x,)))

    values = mindtorch.linspace(low, high, 1000)
    for x in (values, values[:7]):
        wide = value(mindtorch, x.double())
        error = (value(mindtorch, x).double() - wide).abs()
        step = mindtorch.nextafter(wide.float(), wide.float() * 2) - wide.float()
        assert bool((error <= step.abs().double()).logical_or(error.isnan()).all())
    x = mindtorch.tensor(SPECIAL * 20)
    mine, theirs = value(mindtorch, x), value(oracle, oracle.tensor(SPECIAL * 20))
    for ask in ("isnan", "isposinf", "isneginf"):
        assert getattr(mine, ask)().tolist() == getattr(theirs, ask)().tolist()
