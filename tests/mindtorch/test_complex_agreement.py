"""Complex numbers behave as torch's: parts, conjugates, arithmetic, gradients."""

import pytest
from agreement import agree

import mindtorch


def z(t, grad=False):
    made = t.tensor([1 + 2j, -3 + 0.5j, 2 - 1j])
    return made.requires_grad_() if grad else made


CASES = {
    "parts": lambda t: [z(t).real, z(t).imag, t.real(z(t)), t.imag(z(t)), t.ones(2).real],
    "parts alias": lambda t: [(x := z(t)).real.fill_(7) is None, x],
    "setting a part": lambda t: [(x := z(t)).__setattr__("imag", t.zeros(3)), x],
    "imag of real": lambda t: t.imag(t.ones(2)),
    "view as real": lambda t: [t.view_as_real(z(t)), t.view_as_complex(t.arange(6.0).view(3, 2))],
    "view as complex wrong": lambda t: t.view_as_complex(t.ones(3)),
    "conj": lambda t: [t.conj(t.ones(2)), t.conj(z(t)).resolve_conj(), z(t).conj().resolve_conj()],
    "abs and angle": lambda t: [z(t).abs(), t.tensor([1.0, -1.0, 0.0]).angle()],
    "angle of real": lambda t: [
        t.tensor([0.0, -0.0, 1, -1, -t.inf, t.nan], dtype=d).angle()
        for d in (t.float32, t.float64, t.float16)
    ],
    "angle of whole": lambda t: [t.tensor([0, 3, -2]).angle(), t.tensor([True, False]).angle()],
    "arithmetic": lambda t: [z(t) * z(t), z(t) + 1, z(t) / z(t), 2j * t.ones(2)],
    "complex": lambda t: t.complex(t.ones(2), t.zeros(2)),
    "complex of ints": lambda t: t.complex(t.ones(2, dtype=t.int64), t.zeros(2)),
    "matmul": lambda t: z(t).view(1, 3) @ z(t).view(3, 1),
    "sum": lambda t: z(t).sum(),
    "equality": lambda t: z(t) == z(t),
}

PAIRS = """
(x, x.real, x.imag, x.conj(), x.abs(), -x, x == x, x.clone(), x.to(t.complex64), x.half())
(x.add_(1), x.mul_(2j), x.fill_(3), x.copy_(t.ones(2)), x.zero_())
(x.real.fill_(7), x, t.view_as_real(x), t.view_as_complex(t.ones(2, 2).half()))
(x * x, x + 1, 2j * x, x - x.to(t.complex64), x + t.ones(2), t.ones(2).half() * 1j, x.sgn())
(x[0], x[0].item(), x.tolist(), x.reshape(2, 1), t.cat([x, x]), t.stack([x, x]), x.roll(1))
(x.masked_fill(x.real > 1, 2), t.nn.functional.pad(x, (1, 0), value=2), t.full_like(x, 2))
(x.nonzero(), x.any(), x.isnan(), t.tril(x[None]), t.where(x.real > 1, x, 0), x.to(t.int32))
(t.zeros(2, dtype=t.chalf), t.ones(1, dtype=t.chalf), t.full((1,), 1j, dtype=t.chalf))
(t.complex(t.ones(2).half(), t.zeros(2).half()), x.element_size(), x.nbytes, str(x), x.type())
(t.finfo(x.dtype).max, x.dtype.to_real(), t.promote_types(x.dtype, t.float64), x.dtype.itemsize)
x.sum()
x.exp()
x > x
x.numpy()
x.requires_grad_().abs().sum().backward()
t.arange(3).to(t.uint16) + t.arange(3).to(t.uint16)
-t.arange(3).to(t.uint32)
t.arange(3).to(t.uint64).max()
t.arange(3).to(t.uint16) > 1
t.arange(3).to(t.uint16) + t.arange(3)
t.arange(3).to(t.uint16).gather(0, t.arange(2))
(t.arange(3).to(t.uint16) * 2, t.arange(3).to(t.uint32).sum(), t.arange(3).to(t.uint64) == 1)
t.ones(2).to(t.float8_e4m3fn).numpy()
[getattr(t, d).abbr for d in ("bool", "half", "bfloat16", "chalf", "uint8", "float8_e5m2", "int64")]
[getattr(t, d).abbr for d in ("bits8", "bits1x8", "quint4x2", "uint4", "complex128", "uint16")]
t._int_mm(t.ones(2, 3, dtype=t.uint8) * 200, t.ones(3, 2, dtype=t.int8) * -3)
t._int_mm(t.ones(2, 3), t.ones(4, 2))
t._int_mm(t.ones(2, 3, dtype=t.int8), t.ones(3, 2))
t._weight_int8pack_mm(t.ones(2, 3).half(), t.ones(4, 3, dtype=t.int8) * 3, t.ones(4).half() / 7)
t._weight_int8pack_mm(t.ones(2, 3), t.ones(4, 3, dtype=t.int8), t.ones(3))
repr(t.distributions.ReshapeTransform((4,), (2, 2)).forward_shape((7, 4)))
""".strip().split("\n")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("line", PAIRS)
def test_what_is_stored_and_little_else_agrees_with_torch(line):
    agree(lambda t: eval(line, {"t": t, "x": t.tensor([1 + 2j, 3 - 1j]).chalf()}))


def test_numbers_of_a_default_of_halves_are_pairs_of_halves():
    def run(t):
        t.set_default_dtype(t.float16)
        try:
            line = [t.tensor(1j), t.ones(2) * 1j, t.full((1,), 1j), t.result_type(t.ones(1), 1j)]
            return [line, str(t.tensor([1j]))]
        finally:
            t.set_default_dtype(t.float32)

    agree(run)


@pytest.mark.parametrize("name", CASES)
def test_complex_agrees_with_torch(name):
    agree(CASES[name], digits=5)


GRADS = {
    "abs": lambda t, x: x.abs().sum(),
    "real": lambda t, x: x.real.sum(),
    "imag": lambda t, x: (x.imag * 3).sum(),
    "product": lambda t, x: (x * x).real.sum(),
    "product with real": lambda t, x: (x * t.tensor([1.0, 2.0, 3.0])).imag.sum(),
    "quotient": lambda t, x: (x / (x + 1)).real.sum(),
    "conj": lambda t, x: (x * x.conj()).real.sum(),
    "view as real": lambda t, x: (t.view_as_real(x) ** 2).sum(),
    "acosh": lambda t, x: (x.acosh() + (x * 1j).acosh()).real.sum(),
    "asinh": lambda t, x: (x.asinh() + (x * 1j).asinh()).real.sum(),
    "matmul": lambda t, x: (x.view(1, 3) @ x.view(3, 1)).real.sum(),
}


@pytest.mark.parametrize("name", GRADS)
def test_complex_gradients_agree_with_torch(name):
    def run(t):
        x = z(t, grad=True)
        GRADS[name](t, x).backward()
        return t.view_as_real(x.grad.resolve_conj())

    agree(run, digits=5)


def grid(t):
    return t.view_as_complex(t.arange(48.0).reshape(2, 3, 4, 2).sin())


def rows(t, x):
    return t.tensor([0, 2], device=x.device)


def first(t, x):
    return t.zeros(2, 1, 4, dtype=t.int64, device=x.device)


ON_NPU = {
    "matmul": lambda t, x: x @ x.mT,
    "mm": lambda t, x: t.mm(x[0], x[1].T),
    "bmm": lambda t, x: t.bmm(x, x.mT),
    "addmm": lambda t, x: t.addmm(x[0, :, :3], x[0], x[1].T, beta=2, alpha=0.5),
    "baddbmm": lambda t, x: t.baddbmm(x[..., :3], x, x.mT, beta=0),
    "mv": lambda t, x: t.mv(x[0], x[1, 0]),
    "vdot": lambda t, x: t.vdot(x[0, 0], x[1, 0]),
    "einsum": lambda t, x: t.einsum("bij,bkj->bik", x, x.conj()),
    "tensordot": lambda t, x: t.tensordot(x, x, ([1, 2], [1, 2])),
    "roll": lambda t, x: t.roll(t.roll(x, 1, 1), (1, -1), (0, -1)),
    "roll all": lambda t, x: t.roll(x, 5),
    "fftshift": lambda t, x: t.fft.fftshift(x),
    "gather": lambda t, x: x.gather(1, first(t, x)),
    "scatter": lambda t, x: x.scatter(1, first(t, x), x[:, 1:2]),
    "scatter_add": lambda t, x: x.scatter_add(1, first(t, x), x[:, 1:2]),
    "index": lambda t, x: x[:, rows(t, x)],
    "index by mask": lambda t, x: x[x.real > 0],
    "index_put": lambda t, x: x.index_put((rows(t, x) // 2,), x * 2),
    "index_put accumulate": lambda t, x: x.index_put((rows(t, x) * 0,), x, accumulate=True),
    "adding in place": lambda t, x: (x * 1).add_(2.5).mul_(1 - 1j).sub_(1j).div_(2),
    "setting items": lambda t, x: (y := x * 1).__setitem__((0, rows(t, x)), x[1, :2]) or y,
    "index_copy": lambda t, x: x.index_copy(1, rows(t, x), x[:, :2]),
    "index_fill": lambda t, x: x.index_fill(1, rows(t, x), 1 - 2j),
    "addcmul": lambda t, x: t.addcmul(x, x, x, value=0.5),
    "addcdiv": lambda t, x: t.addcdiv(x, x, x + 2, value=0.5),
    "lerp": lambda t, x: t.lerp(x, x * 2, 0.3),
    "ones": lambda t, x: t.ones_like(x) * x,
    "isclose": lambda t, x: t.isclose(x, x + 1e-7) | t.isclose(x, x * 2),
    "nonzero": lambda t, x: (x * (x.real > 0)).nonzero(),
    "any": lambda t, x: [(x * 0).any(), x.any(1), x.all(2)],
    "isfinite": lambda t, x: [(x / 0).isfinite(), x.isfinite(), (x / 0).isinf(), x.isnan()],
    **{
        name: lambda t, x, name=name: getattr(t, name)(x * 1.5)
        for name in ("tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "expm1", "log1p")
    },
    "cumprod": lambda t, x: x.cumprod(2).cumprod(1),
    "cumprod of reals": lambda t, x: x.real.detach().cumprod(1, dtype=t.complex64),
    "eye": lambda t, x: t.eye(3, 4, dtype=x.dtype, device=x.device) * x,
    "linspace": lambda t, x: t.linspace(1, 2j, 4, device=x.device) * x,
    "inv": lambda t, x: t.linalg.inv(x[:, :, :3] + t.eye(3, device=x.device)),
    "vander": lambda t, x: t.linalg.vander(x),
    "conv1d": lambda t, x: t.nn.functional.conv1d(x, x[:, :, :2], x[0, 0, :2], padding=1),
    "conv_transpose1d": lambda t, x: t.nn.functional.conv_transpose1d(x, x[0, :, None, :2]),
}


def test_complex_numbers_on_npu_are_accurate_on_both_sides_and_have_eight_dims():
    def run(t):
        device = "npu" if t is mindtorch else "cpu"
        x = t.tensor([-0.9 + 0.01j, 0.9 - 0.01j, -3 + 0.5j, -1.4 + 1e-3j], dtype=t.complex64)
        eight = t.ones((1,) * 7 + (2,), dtype=t.float64).to(device)
        values = [x.to(device).atanh(), x.to(device).atan(), t.complex(eight, eight * 2)]
        return [v.cpu() for v in values] + [t.tensor(t.nan).angle()]

    agree(run, digits=6)


@pytest.mark.parametrize("name", ON_NPU)
def test_complex_numbers_on_npu_are_computed_by_their_parts(name):
    def run(t):
        device = "npu" if t is mindtorch else "cpu"
        x = grid(t).to(device).requires_grad_()
        y = ON_NPU[name](t, x)
        if isinstance(y, list):
            return [v.cpu() for v in y]
        if not y.requires_grad:
            return y.cpu()
        (y * y.detach()).sum().abs().backward()
        return y.detach().cpu(), x.grad.cpu().contiguous()

    agree(run, digits=3)


def test_bools_on_npu_have_a_mean_in_any_dtype():
    def run(t):
        x = t.tensor([[True, False], [True, True]], device="npu" if t is mindtorch else "cpu")
        return x.mean(1, dtype=t.float32).cpu(), x.mean(dtype=t.float16).cpu()

    agree(run)


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("dtype", [None, "float32", "int32", "bool", "float16"])
def test_bools_on_npu_accumulate_in_any_dtype(name, dtype):
    def run(t):
        device = "npu" if t is mindtorch else "cpu"
        x = t.tensor([[True, False, True], [True, True, True]], device=device)
        words = {} if dtype is None else {"dtype": getattr(t, dtype)}
        return getattr(x, name)(1, **words).cpu()

    if dtype == "bool":  # which torch's cpu does not compute
        assert run(mindtorch).tolist() == [[True, name == "cumsum", name == "cumsum"], [True] * 3]
    else:
        agree(run)


def test_nothing_is_sorted_in_any_dtype_on_npu():
    def run(t):
        x = t.zeros(2, 0, dtype=t.float64, device="npu" if t is mindtorch else "cpu")
        return [v.cpu() for v in x.sort()]

    agree(run)


@pytest.mark.parametrize("name", ["addcmul", "addcdiv", "lerp"])
def test_gradients_of_fused_rows_are_conjugated(name):
    def run(t):
        x, y, w = (z(t).mul(f).detach().requires_grad_() for f in (1, 2 - 1j, 0.5 + 1j))
        (getattr(t, name)(x, y, w) ** 2).sum().abs().backward()
        return x.grad, y.grad, w.grad

    agree(run, digits=4)


CUTS = [3 + 0j, complex(3, -0.0), -3 + 0j, complex(-3, -0.0), 3j, -3j, 0.5j, 0j, 40 + 3j, -40 - 1j]


@pytest.mark.parametrize(
    "name", ["tanh", "asin", "acos", "atan", "asinh", "acosh", "expm1", "log1p"]
)
def test_sides_of_cuts_agree_on_npu(name):
    def run(t):
        x = t.tensor(CUTS).to("npu" if t is mindtorch else "cpu")
        return t.view_as_real(getattr(t, name)(x)).cpu()

    agree(run, digits=3)


def test_xlog1py_of_zero_is_zero_on_npu():
    def run(t):
        device = "npu" if t is mindtorch else "cpu"
        x, y = t.tensor([0.0, 0.0, 0.0, 2.0]), t.tensor([-0.5, float("nan"), -2.0, -1.0])
        return t.special.xlog1py(x.to(device), y.to(device)).cpu()

    agree(run, digits=4)
