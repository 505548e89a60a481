"""Layouts, resizing, copies of views, operands' classes and dtypes of `out=` are as in torch."""

import warnings

import pytest
from agreement import agree

FORMATS = """
X(2,3,4,5).contiguous(memory_format=t.channels_last)
X(2,3,4,5).to(memory_format=t.channels_last)
X(2,3,4,5).clone(memory_format=t.channels_last)
X(2,3,4,5).to(t.float64,memory_format=t.channels_last)
X(2,3,4,5).double(memory_format=t.channels_last)
X(2,3,4,5).to(memory_format=t.channels_last)+1
X(2,3,4,5).to(memory_format=t.channels_last).contiguous()
X(2,3,4,5).to(memory_format=t.channels_last).clone(memory_format=t.contiguous_format)
X(2,3,4,5).to(memory_format=t.channels_last).clone(memory_format=t.preserve_format)
X(2,3,4,5).to(memory_format=t.channels_last).is_contiguous()
X(2,3,4,5).to(memory_format=t.channels_last).is_contiguous(memory_format=t.channels_last)
X(2,3,4,5,1).contiguous(memory_format=t.channels_last_3d)
X(2,3).contiguous(memory_format=t.channels_last)
X(2,3).is_contiguous(memory_format=t.channels_last)
X(2,3).t().contiguous(memory_format=t.preserve_format)
X(2,3).is_contiguous(memory_format=t.preserve_format)
X(2,1,3,3).to(memory_format=t.channels_last)  X(2,3,1,1).to(memory_format=t.channels_last)
X(2,3,1,1).contiguous(memory_format=t.channels_last)
X(0,3,2,2).contiguous(memory_format=t.channels_last)
t.empty(2,3,4,5,memory_format=t.channels_last).stride()
t.empty(2,3,4,5,memory_format=t.preserve_format)
t.empty_like(X(2,3,4,5),memory_format=t.channels_last).stride()
t.zeros_like(X(2,3,4,5),memory_format=t.channels_last)
t.nn.Conv2d(3,4,2).to(memory_format=t.channels_last).weight.stride()
X(120).resize_((2,3,4,5),memory_format=t.channels_last)
X(120).resize_((2,3,4,5,1),memory_format=t.channels_last_3d)
X(120).resize_((2,3,4,5,1),memory_format=t.channels_last)
X(120).resize_(2,memory_format=t.preserve_format)
X(3,2).resize_as_(X(2,3))  t.resize_as_(X(3),X(1))
X(120).resize_as_(X(2,3,4,5).to(memory_format=t.channels_last),memory_format=t.preserve_format)
X(2,3).t().resize_(3,2)  X(2,3).t().resize_(2,2)  X(3).resize_(2).requires_grad
X(3).requires_grad_().resize_(2)  X(3).resize_([-1])  X(3).resize_([0,4,2305843009213693952])
X(3).double().resize_([2,4,2**29,2**29])  X(3).double().resize_([8,8,2**29,2**29])
"""
VIEWS = """
X(2,3).t().flatten()._is_view()  X(2,3).t().reshape(-1)._is_view()  X(2,3).reshape(-1)._is_view()
X(2,3).t().ravel()._is_view()  t.view_as_complex(T(2.))  t.view_as_complex(X(3))
X(5).expand(1,1,5)  X(5).expand(2,1,5)  X(5).expand(1,2,5)  T(1.).expand(1,1)  T(1.).expand(1,3)
X(3,1).expand(1,3,4)  X(0,3).expand(1,0,3)  X(3).t().expand(1,1,1,3)
t.split_copy(X(4),3)  t.detach_copy(X(2))  t.view_as_real_copy(T([1+2j]))
t.view_as_complex_copy(X(3,2))  t._utils._element_size(t.complex128)
X(2).mT  X(2).mH  X(2).H  X(2,3,4).H  X(2).adjoint()  T(1.).adjoint()  T(1.).mT  T(1.).H  T(1.).mH
X(2,3).mH  X(2,3).H  X(2,3,4).adjoint()  X(9).tensor_split(9,1)  X(9).tensor_split([1,2],1)
X(9).tensor_split(T(1.5))  X(9).tensor_split(T([[1]]))  X(9).tensor_split(T([1,2]))
t.vsplit(X(4),2)  t.dsplit(X(2,2),2)  t.broadcast_shapes((3,1),2)  t.broadcast_shapes(2,3)
t.broadcast_shapes((2,),(3,))  t.broadcast_shapes((-1,))  t.broadcast_shapes()
t.broadcast_shapes((1,3),(2,1),(4,1,1))  t.scalar_tensor(False)  t.scalar_tensor(3)
t.scalar_tensor(3,dtype=t.int64)  t.scalar_tensor(1j,dtype=t.complex64)
"""
NUMBERS = """
t.add(True,True)  t.add(2,3)  t.mul(2,3.5)  t.true_divide(2,3)  t.sub(3,2)  t.mul(2,T([3]).byte())
t.add(2,T(3))  t.sub(2,T(3))  t.add(True,T(3))  t.div(2,T(3))  t.div(2,T([3]).byte())
t.add(2.5,T(3.).half())  t.add(0.5,T([3.]).half())  t.add(2,T([3.]).half(),alpha=2)
t.div(7,T([3]),rounding_mode='floor')  t.floor_divide(7,T([3]))  t.floor_divide(7,2)
t.multiply(2,T([3]))  t.subtract(2,T([3]))  t.divide(2,T([3]))  t.add(input=2,other=T([3]))
t.add(1,T([1.],requires_grad=True)).requires_grad  t.add(1j,T([1]))  t.sub(True,T([1]))
t.sub(True,True)  T([1])-T([True])  T([1])-True  T([True])-1  T([True])-T([True])  T([True])-True
True-T([1])  1-T([True])  t.rsub(T([True]),1)  T([1.]).sub_(True)  T([1.])-T([True])
t.clamp(T([1,2]).int(),T(1.5).double(),T([1.,.7]))  t.clamp(T([1,2]),T([1.5,.5]).double(),T([1.,.7]))
"""
REFUSED = """
t.floor(T(True))  t.ceil(T(True))  t.trunc(T(True))  t.round(T(True))  t.frac(T(True))  t.frac(T(1))
t.floor(T(1j))  t.ceil(T(1j))  t.trunc(T(1j))  t.round(T(1j))  t.frac(T(1j))  t.sign(T(1j))
t.round(T(1))  t.round(T(1),decimals=1)  t.round(T(1.25),decimals=1)  t.round(T(1j),decimals=1)
t.floor(T(1))  t.sign(T(True))  t.sgn(T(1j))  t.ge(T(1j),1)  t.lt(T(1j),T(1.))  t.eq(T(1j),1)
"""
OUTS = """
t.add(X(2,3).t(),X(2,3).t(),out=E(t.float32))  t.abs(X(2,3,4).mT,out=E(t.float64))
t.cumsum(X(2,3).t(),0,out=E(t.float32))  t.where(X(2,3).t()>1,X(2,3).t(),T(0.),out=E(t.float32))
t.add(T(33000.).half(),T(33000.).half(),out=E(t.float64))
t.true_divide(T(1.5).half(),T(.666).half(),out=E(t.float64))
t.mul(T([200]).byte(),T([200]).byte(),out=E(t.float64))
t.sub(T([5]).byte(),T([8]).byte(),out=E(t.int32))  t.add(T([1]),T([2]),out=E(t.float32))
t.sum(T([1.5,2.]),0,out=E(t.int64))  t.sum(T([1.1,1.1,1.1]),0,out=E(t.float64))
t.sum(T([1.1]),0,dtype=t.float32,out=E(t.float64))  t.prod(T([1.1,1.1]),0,out=E(t.float64))
t.cumsum(T([200,200]).byte(),0,out=E(t.uint8))  t.cumprod(T([1.1,1.1]),0,out=E(t.float64))
t.neg(T(1),out=E(t.float32))  t.floor(T(1.),out=E(t.float64))  t.abs(T(1),out=E(t.float32))
t.abs(T(3+4j),out=E(t.float64))  t.abs(T(3+4j),out=E(t.complex64))  t.sgn(T(1.),out=E(t.float64))
t.clamp(T(2),0,1,out=E(t.float32))  t.bitwise_not(T(2),out=E(t.int32))
t.logical_not(T(2),out=E(t.int32))  t.signbit(T(1.),out=E(t.int8))  t.isposinf(T(1.),out=E(t.int8))
t.all(T([1.]),0,out=E(t.uint8))  t.any(T([1.]),0,out=E(t.float32))  t.eq(T(1),T(1),out=E(t.int8))
t.amax(T([1.]),0,out=E(t.float64))  t.argmax(T([1.]),0,out=E(t.int32))
t.detach_copy(X(2),out=E(t.float64))  t.narrow_copy(X(2),0,0,1,out=E(t.float64))
t.mm(X(2,2),X(2,2),out=E(t.float64))  t.dot(X(2),X(2),out=E(t.float64))
t.index_select(X(2),0,T([0]),out=E(t.float64))  t.take(X(2),T([0]),out=E(t.float64))
t.where(T([True]),X(1),X(1),out=E(t.float64))  t.nan_to_num(T(1.),out=E(t.float64))
t.sort(X(2),out=(E(t.float64),E(t.int64)))  t.sort(X(2),out=(E(t.float32),E(t.int32)))
t.topk(X(2),1,out=(E(t.float64),E(t.int64)))  t.max(X(2),0,out=(E(t.float64),E(t.int64)))
t.kthvalue(X(2),1,out=(E(t.float64),E(t.int64)))  t.cummax(X(2),0,out=(E(t.float64),E(t.int64)))
t.frexp(X(2),out=(E(t.float64),E(t.int32)))  t.tril(X(2,2),out=E(t.float64))
t.cat([X(2),X(2)],out=E(t.float64))  t.inner(X(2),X(2),out=E(t.float64))
"""


def cases(text):
    return [case for line in text.splitlines() for case in line.split("  ") if case.strip()]


@pytest.mark.parametrize(
    "case", cases(FORMATS) + cases(VIEWS) + cases(NUMBERS) + cases(REFUSED) + cases(OUTS)
)
def test_expressions_give_what_torch_gives(case):
    def run(t):
        names = {
            "t": t, "T": t.tensor, "E": lambda dtype: t.empty(0, dtype=dtype),
            "X": lambda *shape: t.ones(shape).cumsum(0),
        }  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return eval(case, names)

    agree(run)


def test_gradients_reach_a_tensor_through_its_channels_last_copy():
    def run(t):
        x = t.ones(2, 3, 4, 5, requires_grad=True)
        y = x.contiguous(memory_format=t.channels_last)
        (y * y).sum().backward()
        return x.grad

    agree(run)


def test_a_reshaped_copy_may_be_written_to_and_keeps_its_history():
    def run(t):
        x = t.ones(2, 3, requires_grad=True)
        y = (x * 2).t().reshape(-1)
        y[0] = 5.0
        y.mul_(3).sum().backward()
        return y, x.grad

    agree(run)
