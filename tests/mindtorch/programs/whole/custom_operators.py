"""Custom operators through torch.library: schema, fake kernels, autograd, mutation, vmap."""
from typing import List, Optional, Tuple

import numpy as np
import torch
from torch import Tensor
from torch.library import custom_op

torch.manual_seed(0)

@custom_op("users::numpy_sin", mutates_args=())
def numpy_sin(x: Tensor) -> Tensor:
    return torch.from_numpy(np.sin(x.detach().cpu().numpy()))

@numpy_sin.register_fake
def _(x):
    return torch.empty_like(x)

def _setup(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])

numpy_sin.register_autograd(lambda ctx, g: g * ctx.saved_tensors[0].cos(), setup_context=_setup)

@custom_op("users::clamp_count", mutates_args=())
def clamp_count(x: Tensor, lo: float, hi: Optional[float] = None) -> Tuple[Tensor, Tensor]:
    y = x.clamp(lo, hi)
    return y.clone(), (y != x).sum()

@custom_op("users::axpy_", mutates_args={"y"})
def axpy_(alpha: float, x: Tensor, y: Tensor) -> None:
    y.add_(x, alpha=alpha)

@custom_op("users::weighted_sum", mutates_args=())
def weighted_sum(xs: List[Tensor], w: List[float], scale: int = 1) -> Tensor:
    return sum(a * b for a, b in zip(xs, w)) * scale

@numpy_sin.register_vmap
def _(info, in_dims, x):
    return numpy_sin(x), in_dims[0]

for op in (numpy_sin, clamp_count, axpy_, weighted_sum):
    print(op._opoverload._schema)

x = torch.linspace(-1, 1, 5, requires_grad=True)
y = numpy_sin(x)
y.sum().backward()
print("sin", torch.allclose(y, x.sin()), "grad", torch.allclose(x.grad, x.detach().cos()))
print("through torch.ops:", torch.equal(torch.ops.users.numpy_sin(x.detach()), y.detach()), torch.ops.users.numpy_sin.default)
print("fake on meta", numpy_sin(torch.empty(3, 2, device="meta")).shape)
print("vmap", torch.func.vmap(numpy_sin)(torch.zeros(4, 2)).shape)
out, n = clamp_count(torch.arange(6.0), 1.0, 4.0)
print("clamp", out.tolist(), n.item(), clamp_count(torch.arange(3.0), 1.0)[0].tolist())
acc = torch.ones(3)
v0 = acc._version
r = axpy_(2.0, torch.arange(3.0), acc)
print("axpy", acc.tolist(), r, "version bumped:", acc._version > v0)
print("list", weighted_sum([torch.ones(2), torch.ones(2) * 3], [0.5, 2.0], scale=2).tolist())

# the older style: a Library with define/impl
lib = torch.library.Library("users2", "DEF")
lib.define("relu6_like(Tensor x, float cap=6.0) -> Tensor")

def relu6_cpu(x, cap=6.0):
    return x.clamp(0, cap)

lib.impl("relu6_like", relu6_cpu, "CompositeImplicitAutograd")
z = torch.tensor([-1.0, 3.0, 9.0], requires_grad=True)
torch.ops.users2.relu6_like(z).sum().backward()
print("library", torch.ops.users2.relu6_like(z, cap=2.5).tolist(), z.grad.tolist())

def ident(x: Tensor) -> Tensor:
    return x.clone()


for name, bad in {
    "wrong type": lambda: numpy_sin("a"),
    "missing arg": lambda: torch.ops.users.axpy_(1.0, acc),
    "unknown op": lambda: torch.ops.users.not_there(acc),
    "no autograd": lambda: clamp_count(x * 1, 0.0)[0].sum().backward(),
    "no annotation": lambda: custom_op("users::bad", mutates_args=())(lambda x: x),
    "no namespace": lambda: custom_op("bad", mutates_args=())(ident),
}.items():
    try:
        bad()
        print(name, "-> no error")
    except Exception as e:
        print(name, "->", type(e).__name__, str(e).strip().splitlines()[0][:80])
