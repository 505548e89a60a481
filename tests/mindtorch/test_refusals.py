"""What torch refuses is refused by the same class of error, at once, on cpu and on npu.

`python tests/mindtorch/test_refusals.py FILE` compares the expressions of a file, one a line, with
torch on the cpu: the attack that these lists grew from.
"""

import sys
from math import inf, nan
from pathlib import Path

import numpy as np
import pytest

import mindtorch

SIZES = """
zeros(-1)  zeros(2**62)  zeros(2**62,2**62)  zeros(2**65)  zeros(2**40,2**40,0)  empty(2**62)
full((2**62,),1.)  eye(2**40)  rand(2**62)  randn(-1)  randperm(-1)  linspace(0,1,2**62)
arange(nan)  arange(inf)  arange(0,1e30)  arange(0,10,nan)  arange(0,1,1e-300)  arange(2**62)
O(3).expand(2**62,3)  O(2).repeat(-1)  O(2).repeat(2**40,2**40)  O(2).tile(-1)
O(3).unfold(0,-1,1)  O(4).resize_(-1)  O(3).view(float64)  O(4)[1:].view(float64)
F.interpolate(O(1,1,2,2),size=(2**62,2))  F.interpolate(O(1,1,2,2),size=(2**40,2))
F.interpolate(O(1,1,2,2),size=(2**62,2),mode='bicubic')  F.interpolate(O(1,1,2,2),size=0)
F.interpolate(O(1,1,2,2),scale_factor=1e30)  F.interpolate(O(1,1,2,2),scale_factor=nan)
F.interpolate(O(1,1,0,2),size=3)  F.interpolate(O(1,1,2,2),scale_factor=-1)
F.conv2d(O(1,1,2,2),O(1,1,2,2),stride=0)  F.conv2d(O(1,1,2,2),O(1,1,2,2),dilation=0)
F.conv2d(O(1,1,2,2),O(1,1,2,2),stride=-1)  F.conv2d(O(1,1,2,2),O(1,1,2,2),padding=-1)
F.conv2d(O(1,1,2,2),O(1,1,2,2),groups=0)  F.conv2d(O(1,1,2,2),O(1,1,2,2),padding=2**62)
F.conv2d(O(1,1,4,4),O(1,1,0,0))  F.conv1d(O(1,1,2),O(1,1,2),stride=0)
F.conv_transpose2d(O(1,1,2,2),O(1,1,2,2),stride=0)
F.conv_transpose2d(O(1,1,2,2),O(1,1,2,2),padding=5)
F.conv_transpose2d(O(1,1,2,2),O(1,1,2,2),output_padding=1)
F.conv_transpose2d(O(1,1,2,2),O(1,1,2,2),output_padding=-1)
F.max_pool2d(O(1,1,2,2),0)  F.max_pool2d(O(1,1,2,2),2,0)  F.max_pool2d(O(1,1,2,2),2,dilation=0)
F.avg_pool2d(O(1,1,2,2),0)  F.avg_pool2d(O(1,1,2,2),2,0)  F.avg_pool1d(O(1,1,2),0)
F.max_pool1d(O(1,1,2),0)  F.max_pool3d(O(1,1,2,2,2),0)
F.adaptive_avg_pool2d(O(1,1,2,2),-1)  F.adaptive_max_pool2d(O(1,1,2,2),-1)
F.unfold(O(1,1,2,2),0)  F.unfold(O(1,1,2,2),2,stride=0)  F.pixel_unshuffle(O(1,1,3,3),0)
F.channel_shuffle(O(1,4,2,2),0)  histc(O(3),0)  histc(T([1.]),10,5,2)  bincount(T([-1]))
bincount(T([1]),minlength=-1)
F.layer_norm(O(2,3),(3,),O(1))  F.layer_norm(O(2,3),(3,),None,O(2,3))  F.group_norm(O(2,4,3),3)
F.group_norm(O(2,4,3),2,O(1))  F.group_norm(O(2,4,3),2,None,O(4,1))  T(1.).roll(1,0)
F.fold(T(1.),(5,6),(2,3))  F.fold(O(7,15),(5,6),(2,3))
"""
NUMBERS = """
T([2])**-1  pow(T([2]),-1)  T([2]).pow_(-1)  I(2).fill_(300)  I(2).fill_(-129)  I(2).fill_(nan)
I(2).masked_fill_(T([True,False]),300)  I(2).index_fill_(0,T([0]),300)  I(2).__setitem__(0,300)
I(2).scatter_(0,T([0]),300)  full((2,),300,dtype=int8)  full_like(I(2),300)  clamp(I(2),300,400)
where(T([True,False]),I(2),300)  tensor(300,dtype=int8)  tensor([300],dtype=uint8)
O(2).half().fill_(1e9)  O(2).long().fill_(1e30)  O(2).long().fill_(nan)  O(2).long().fill_(2**64)
constant_pad_nd(I(2),(1,1),300)  randint(0,300,(2,),dtype=int8)  O(2).random_(5,5)
normal(0.,-1.,(2,))  multinomial(T([1,1]),1)
Z(4).masked_scatter_(T([True]*4),O(2))  scatter(O(2),0,T([0,1]),O(1))
scatter(O(2,2),1,T([[0,0,0],[0,0,0],[0,0,0]]),1.)
O(2).exponential_(nan)  O(2).normal_(0.,nan)  O(2).cauchy_(0.,nan)  O(2).log_normal_(0.,nan)
O(2).geometric_(nan)  normal(0.,nan,(2,))  F.dropout(O(1),nan)  F.alpha_dropout(O(1),nan)
O(2).isclose(O(2),rtol=-1.)  O(2).isclose(O(2),atol=nan)  O(0).norm(inf)  O(0,3).norm(-1,0)
linalg.solve(O(2,2),O(2))  linalg.solve(T([[1.,2.],[2.,4.]]),O(2,1))  linalg.solve(Z(2,2),O(2))
"""
SHAPES = """
F.ctc_loss(O(5,2,4),T([[1,2],[1,2]]),T([5,5]),T([2,9]))
F.ctc_loss(O(5,2,4),T([[1,2],[1,2]]),T([5,50]),T([2,2]))
F.ctc_loss(O(5,2,4),T([[1,2],[1,2]]),T([5,-1]),T([2,2]))
F.ctc_loss(O(5,2,4),T([[1,2],[1,2]]),T([5,5]),T([-2,2]))
F.ctc_loss(O(5,2,4),T([[1,2],[1,2]]),T([5]),T([2,2]))
F.ctc_loss(O(5,2,4),T([[1,2],[1,2]]),T([5,5]),T([2]))
F.ctc_loss(O(5,2,4),T([[1,2]]),T([5,5]),T([2,2]))  F.ctc_loss(O(5,2,4),T([1,2]),T([5,5]),T([2,2]))
F.ctc_loss(O(5,2,4),T([[1,2],[1,2]]),T([5,5]),T([2,2]),blank=4)
F.batch_norm(O(2,3,4),O(5),O(5),training=True)  F.batch_norm(O(2,3,4),O(3),O(4))
F.batch_norm(O(2,3,4),O(3),O(3),O(7),O(7),True)  F.batch_norm(O(2,3,4),O(3),O(3),O(3),O(2))
F.binary_cross_entropy_with_logits(O(2,3),O(2,3),weight=O(5))
F.binary_cross_entropy_with_logits(O(2,3),O(3))
F.binary_cross_entropy_with_logits(O(2,3),O(2,3),pos_weight=O(7))
F.binary_cross_entropy(O(2,3),O(2,3),weight=O(5))
F.grid_sample(O(1,1,3,3),O(1,2,2,3))  F.grid_sample(O(1,1,3,3),O(2,2,2,2))
F.grid_sample(O(1,1,3,3),O(1,2,2,2,2))  F.grid_sample(O(1,1,0,3),O(1,2,2,2))
F.grid_sample(O(1,3,3),O(1,2,2))  F.affine_grid(O(1,2,3),(1,1,2**31,2**31))
F.affine_grid(O(1,2,3),(1,1,2**62,4))  F.affine_grid(O(1,2,3),(1,1,2**40,2**10))
F.affine_grid(O(1,3,4),(1,1,2,2))  F.affine_grid(O(1,2,3),(1,1,0,2))
"""
# What a device meets only as it runs; there it is the device's error.
ON_THE_HOST = """
A(3).index_select(0,T([-1]))  A(3).gather(0,T([-1]))  A(3).take(T([-4]))  A(3).take(T([3]))
Z(3).scatter_(0,T([-1]),1.)  Z(3).scatter_add_(0,T([-1]),O(1))  Z(3).index_add_(0,T([3]),O(1))
Z(3).index_copy_(0,T([-1]),O(1))  Z(3).index_fill_(0,T([3]),1.)  F.embedding(T([-1]),O(3,2))
bernoulli(T([2.]))  bernoulli(T([nan]))  normal(T([0.]),T([-1.]))  O(1).bernoulli_(T([2.]))
F.embedding_bag(T([0,1]),O(2,2),T([0,5]))  F.embedding_bag(T([0,1]),O(2,2),T([1,1]))
"""
TAKEN = """
A(3).take(T([-1]))  A(3).take_along_dim(T([-1]),0)  Z(3).index_fill_(0,T([-1]),1.)  A(3)[T([-1])]
T([True,False]).masked_fill(T([True,True]),0.5)  T([True,False]).scatter(0,T([0]),0.5)
O(2).byte().fill_(-1)  O(2).bool().fill_(3)  O(2).half().fill_(inf)  I(2)+300  I(2)==300
median(T([1.,nan,0.]))  median(T([[1.,nan,0.],[1.,2.,3.]]),1)  quantile(T([1.,nan,0.]),0.5)
median(T([]))  O(4).view(float64)  arange(0,-5,-2)  arange(5,0,-2)  arange(0,1,0.3)
T(1.).flip(0)  T(1.).flip(-1)  T(1.).roll(1)
pow(T([2,1,-1,0]),T([-1,-1,-1,1]))  T([1,-2]).trunc()  I(2).floor_()  T([3]).byte().ceil()
linalg.solve(T([[1.,0.],[0.,1e-10]]),O(2))  O(0,3).norm(nan)  O(1).expand(2**40).shape
"""


def cases(text):
    return [case for line in text.splitlines() for case in line.split("  ") if case.strip()]


def result(library, device, expression):
    """What an expression gives as text, or the class of the error that it raises."""
    made = {"device": device}
    names = dict(vars(library)) | {
        "F": library.nn.functional, "linalg": library.linalg, "np": np, "nan": nan, "inf": inf,
        "T": lambda data: library.tensor(data, **made), "O": lambda *s: library.ones(*s, **made),
        "Z": lambda *s: library.zeros(*s, **made), "A": lambda *s: library.arange(*s, **made),
        "I": lambda *s: library.zeros(*s, dtype=library.int8, **made),
    }  # fmt: skip
    for name in ("zeros", "empty", "full", "eye", "rand", "randn", "randperm", "linspace",
                 "arange", "tensor", "randint", "normal", "scatter", "pow", "where", "clamp",
                 "histc", "bincount", "median", "quantile", "multinomial", "bernoulli",
                 "full_like", "constant_pad_nd"):  # fmt: skip
        names[name] = _on(getattr(library, name), device, name)
    try:
        value = eval(expression, names)
        return repr(value.cpu() if hasattr(value, "cpu") else value)
    except Exception as error:
        return next(k for k in _CLASSES if isinstance(error, k))


_CLASSES = (IndexError, TypeError, OverflowError, RuntimeError, ValueError, Exception)
_FACTORIES = ("zeros", "empty", "full", "eye", "rand", "randn", "randperm", "linspace", "arange",
              "tensor", "randint")  # fmt: skip


def _on(function, device, name):
    if name not in _FACTORIES:
        return function
    return lambda *args, **kwargs: function(*args, device=device, **kwargs)


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="torch 2.13 is the oracle")


@pytest.mark.parametrize("device", ["cpu", "npu"])
@pytest.mark.parametrize("case", cases(SIZES) + cases(NUMBERS) + cases(SHAPES))
def test_what_torch_refuses_is_refused_by_the_same_class(torch, case, device):
    expected = result(torch, "cpu", case)
    assert isinstance(expected, type), f"torch takes it: {expected}"
    assert result(mindtorch, device, case) is expected


@pytest.mark.parametrize("case", cases(ON_THE_HOST))
def test_values_that_torch_looks_at_are_looked_at_on_cpu(torch, case):
    expected = result(torch, "cpu", case)
    assert isinstance(expected, type), f"torch takes it: {expected}"
    assert result(mindtorch, "cpu", case) is expected


@pytest.mark.parametrize("device", ["cpu", "npu"])
@pytest.mark.parametrize("case", cases(TAKEN))
def test_what_torch_takes_gives_the_same_numbers(torch, case, device):
    expected = result(torch, "cpu", case)
    assert not isinstance(expected, type)
    ours = result(mindtorch, device, case)
    assert _numbers(ours) == _numbers(expected)


def _numbers(text):
    plain = str(text).replace("torch.return_types.", "").replace("device='npu:0'", "")
    return "".join(plain.split()).replace(",,", ",").replace(",)", ")")


@pytest.mark.parametrize("device", ["cpu", "npu"])
def test_draws_of_what_is_no_distribution_end(device):
    def odd(*numbers):
        return mindtorch.tensor(numbers, device=device)

    assert not mindtorch._standard_gamma(odd(nan, inf)).isfinite().any()
    assert not mindtorch.poisson(odd(inf)).isfinite().any()
    assert not mindtorch.binomial(odd(inf), odd(0.5)).isfinite().any()
    assert mindtorch.binomial(odd(3.0, 3.0), odd(1.5, -0.5)).tolist() == [3.0, 0.0]


def test_an_array_in_the_other_byte_order_or_of_uneven_strides_is_refused():
    packed = np.zeros(3, [("a", "i1"), ("b", "<f4")])["b"]
    for make in (mindtorch.from_numpy, mindtorch.tensor, mindtorch.as_tensor):
        with pytest.raises(ValueError, match="byte order"):
            make(np.arange(3, dtype=">f4"))
    with pytest.raises(ValueError, match="multiple of the element byte size"):
        mindtorch.from_numpy(packed)


if __name__ == "__main__":
    import torch as oracle

    for expression in Path(sys.argv[1]).read_text("utf-8").splitlines():
        found = [result(m, d, expression) for m, d in
                 ((oracle, "cpu"), (mindtorch, "cpu"), (mindtorch, "npu"))]  # fmt: skip
        if found[0] != found[1] or found[0] != found[2]:
            print(expression.strip(), *found, sep="\n  ")


@pytest.mark.parametrize(
    "name", ["npu:²", "npu:999", "npu:99999999999999999999", "npu:-1", "npu:01"]
)
def test_indices_of_devices_are_looked_at(name):
    with pytest.raises(RuntimeError, match=r"[dD]evice index|Invalid device string"):
        mindtorch.device(name)


@pytest.mark.parametrize(("kind", "index"), [("npu", -1), ("npu", 2**70), ("npu:0", 1)])
def test_an_index_beside_a_device_is_looked_at(kind, index):
    with pytest.raises(RuntimeError, match="index"):
        mindtorch.device(kind, index)
