"""Draws programs of torch and runs them in torch and in mindtorch, on cpu and on npu.

`python tests/mindtorch/fuzz_programs.py [--programs N] [--seed S] [--device cpu|npu]` draws 5 to 15
statements a program: views, in-place writes, casts, reductions, indices, gradients, over every
dtype, 0-d and empty tensors, NaN, infinities, -0.0, the edges of integers. Each statement must give
what torch gives (dtype, shape, strides, values, the effect on all other tensors) or raise what
torch raises. What differs is cut down to the statements that it takes, and printed as one line of
`lines/`, where it is kept as a test once it is mended.

On npu a statement may be refused by name where torch's cpu takes it (CANN has fewer dtypes); it may
not give another value, nor be taken where torch refuses. Texts of errors are not compared.
"""

import argparse
import math
import random
import re
import resource
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

import mindtorch

REALS = ("float32", "float64", "float16", "bfloat16")
WHOLE = ("int64", "int32", "int16", "int8", "uint8")
DTYPES = (*REALS, *WHOLE, "bool", "complex64")
SHAPES = ((), (3,), (2, 3), (2, 1), (1, 3), (3, 3), (2, 3, 2), (0,), (0, 3), (2, 0), (1,), (4,))
NUMBERS = ("0", "1", "-1", "2", "3", "0.5", "-2.5", "1.5", "True", "-0.0", "float('nan')",
           "float('inf')", "-float('inf')", "300", "-129", "2**31", "-2**63", "2**53 + 1", "1e-3",
           "1e30", "1j")  # fmt: skip

# X any tensor, F of reals, I of integers, B of bools, Y a tensor or number, N a number, D a
# dimension of X, K a small integer, Z a small integer from 0, S a shape, T a dtype, L an index.
ONE = """
abs neg sign square sqrt rsqrt exp expm1 log log1p log2 sin cos tan tanh sinh asin acos atan asinh
sigmoid reciprocal floor ceil round trunc frac isnan isinf isfinite isposinf isneginf signbit
logical_not bitwise_not positive erf erfc lgamma digamma exp2 sgn nan_to_num
deg2rad rad2deg logit angle i0 sinc atanh acosh cosh erfinv relu isreal
"""
TWO = """
add sub mul div true_divide floor_divide remainder fmod pow maximum minimum fmax fmin atan2 hypot
copysign nextafter eq ne lt le gt ge logical_and logical_or logical_xor bitwise_and bitwise_or
bitwise_xor bitwise_left_shift bitwise_right_shift gcd lcm xlogy logaddexp logaddexp2 heaviside
float_power ldexp rsub special.xlog1py isclose
"""
FOLDS = """
sum mean prod amax amin max min argmax argmin all any var std logsumexp cumsum cumprod cummax
cummin softmax log_softmax median nanmedian mode norm nansum nanmean count_nonzero sort argsort
logcumsumexp aminmax unique_consecutive flip
"""
SHAPED = """
X.view(-1)  X.reshape(-1)  X.reshape(S)  X.view(S)  X.t()  X.mT  X.transpose(D, D)
X.unsqueeze(D)  X.squeeze()  X.squeeze(D)  X.expand(2, *X.shape)  X.expand(S)  X.expand_as(Y)
X.narrow(D, Z, K)  X.select(D, K)  X.diagonal()  X.diagonal(K)  X.unfold(D, Z, K)  X.flatten()
X.movedim(D, D)  X.swapaxes(D, D)  X.split(K, D)[0]  X.chunk(K, D)[-1]  X.tensor_split(K, D)[0]
X.unbind(D)[0]  X.permute(*range(X.dim())[::-1])  X.contiguous()  X.clone()  X.detach()  X.T
X.ravel()  X.view(T)  X.to(T)  X.type(T)  X.to(T, copy=True)  X.real  X.view_as(X)
X.as_strided(S, (1, 2)[:len(S)])  X.repeat(S)  X.tile(S)  X.repeat_interleave(Z)
X.repeat_interleave(K, D)  X.flip(D)  X.roll(K, D)  X.rot90(K, (0, 1))  X.tril(K)  X.triu(K)
X.diag()  X.diag_embed(K)  torch.cat((X, X), D)  torch.cat((X, Y))  torch.stack((X, X), D)
torch.stack((X, Y))  X.new_zeros(S)  torch.zeros_like(X)  torch.full_like(X, N)
X.new_full(S, N)  torch.hstack((X, Y))  torch.vstack((X, Y))  X.unflatten(D, (K, -1))
torch.atleast_2d(X)  torch.broadcast_tensors(X, X2)[0]  X.sum_to_size(S)
torch.meshgrid(X, X2, indexing='ij')[1]  torch.block_diag(X, X2)  X.float()  X.double()
X.half()  X.bfloat16()  X.long()  X.int()  X.short()  X.byte()  X.bool()  X.char()
torch.as_tensor(X, dtype=T)  torch.tensor([X.numel(), N], device=device)  X.fliplr()  X.data
"""
INDEXED = """
X[L]  X[L, L]  X[..., L]  X[None, L]  X[B]  X[I]  X[I, I]  X[:, I]  X[B, L]  X[X > Y]
X[X.isnan()]  X.index_select(D, I)  X.gather(D, I)  X.take(I)  X.masked_select(B)
torch.where(B, X, Y)  torch.where(X > Y, X, X2)  X.nonzero()  X.argwhere()
torch.take_along_dim(X, I, D)  X.scatter(D, I, N)  X.scatter(D, I, X2)  X.scatter_add(D, I, X2)
X.index_add(D, I, X2)  X.index_fill(D, I, N)  X.index_copy(D, I, X2)  X.masked_fill(B, N)
X.masked_scatter(B, X2)  X.index_put((I,), X2)  X.index_put((I,), X2, accumulate=True)
X.scatter_reduce(D, I, X2, 'amax')  X.scatter_reduce(D, I, X2, 'mean', include_self=False)
X.scatter_reduce(D, I, X2, 'prod')  X.topk(Z, D)  X.kthvalue(K, D)  X.bincount()
torch.searchsorted(X, Y)  torch.bucketize(X, X2)  X.unique()  torch.isin(X, X2)
torch.histc(F, 4)  X.diff()  X.quantile(0.5)  X.item()  X.tolist()
torch.index_reduce(X, D, I, X2, 'amin')  X.select_scatter(X2, D, K)
X.slice_scatter(X2, D, Z, K)  X.diagonal_scatter(X2)  X.msort()  torch.tensordot(X, X2, 1)
X.nanquantile(0.25, D)
"""
WRITES = """
X.add_(Y)  X.sub_(Y)  X.mul_(Y)  X.div_(Y)  X.pow_(Y)  X.fmod_(Y)  X.remainder_(Y)  X.zero_()
X.floor_divide_(Y)  X.fill_(N)  X.fill_(X2)  X.copy_(Y)  X.copy_(X2)  X.neg_()  X.abs_()
X.relu_()  X.clamp_(N, N)  X.clamp_min_(N)  X.clamp_max_(X2)  X.sqrt_()  X.exp_()  X.round_()
X.logical_not_()  X.bitwise_and_(Y)  X.bitwise_xor_(Y)  X.masked_fill_(B, N)
X.masked_fill_(B, X2)  X.index_fill_(D, I, N)  X.masked_scatter_(B, X2)  X.scatter_(D, I, X2)
X.scatter_add_(D, I, X2)  X.index_add_(D, I, X2)  X.index_copy_(D, I, X2)  X.put_(I, X2)  X.t_()
X.squeeze_()  X.unsqueeze_(D)  X.transpose_(D, D)  X[L] = Y  X[B] = Y  X[I] = Y  X[..., L] = Y
X[X > Y] = N  X[:] = Y  X[L, L] = Y  X[I, I] = Y  X += Y  X *= Y  X -= Y  X /= Y  X **= 2
X //= Y  X %= Y  X &= Y  X |= Y  X ^= Y  X <<= Z  X.lerp_(X2, 0.5)  X.addcmul_(X2, X2)
X.addcdiv_(X2, X2)  X.cumsum_(D)  X.cumprod_(D)  X.triu_(K)  X.fill_diagonal_(N)  X.eq_(Y)
X.lt_(Y)  X.copysign_(Y)  X.hypot_(X2)  X.nan_to_num_()  X.set_(X2)  torch.add(X, Y, out=X2)
torch.mul(X, X2, out=X2)  torch.sum(X, D, out=X2)  X.sigmoid_()  torch.where(B, X, X2, out=X2)
torch.cat((X, X), out=X2)  torch.max(X, D, out=(X2, I))  X.index_put_((I,), X2, accumulate=True)
X.xlogy_(Y)  X.trunc_()  X.sgn_()  X.__ior__(Y)  X.addmm_(X2, X2)  X.mul_(X)  X.add_(X[:1])
X.copy_(X.flip(0))
"""
MATHS = """
X @ X2  torch.matmul(X, X2)  torch.mm(X, X2)  X.mv(X2)  X.dot(X2)  torch.outer(X, X2)
X.addmm(X2, X2)  torch.einsum('ij,jk->ik', X, X2)  torch.baddbmm(X, X2, X2)  torch.kron(X, X2)
X.trace()  X.det()  torch.clamp(X, N, N)  torch.clamp(X, min=N)  torch.clamp(X, max=X2)
torch.clamp(X, X2, X2)  torch.lerp(X, X2, N)  torch.addcmul(X, X2, X2, value=N)
torch.addcdiv(X, X2, X2)  X.add(Y, alpha=N)  X.sub(Y, alpha=N)
torch.div(X, Y, rounding_mode='floor')  torch.div(X, Y, rounding_mode='trunc')  X + Y  X - Y
X * Y  X / Y  X // Y  X % Y  X ** Y  N - X  N / X  N // X  N % X  N ** X  X & Y  X | Y  X ^ Y
~X  -X  X << Z  X >> Z  X == Y  X != Y  X < Y  X >= Y  abs(X)  round(X)  X.sum(dtype=T)
X.mean(D, dtype=T)  X.prod(D, dtype=T)  X.cumsum(D, dtype=T)  F.relu(X)  F.gelu(X)  F.silu(X)
F.softplus(X)  F.elu(X)  F.leaky_relu(X)  F.hardtanh(X)  F.softmax(X, D, dtype=T)  F.one_hot(I)
F.mse_loss(X, X2)  F.l1_loss(X, X2)  F.normalize(X, dim=D)  F.pad(X, (K, Z))
F.pad(X, (K, Z), value=N)  F.layer_norm(X, X.shape[-1:])  F.cross_entropy(X, X2)
F.smooth_l1_loss(X, X2)  F.glu(X, D)  F.embedding(I, X)  F.dropout(X, 0.0)  F.threshold(X, N, N)
F.hardshrink(X)  F.logsigmoid(X)  torch.cdist(X, X2)  X.norm(N)  X.norm(2, D)
torch.linalg.vector_norm(X, N)  torch.dist(X, X2)  torch.equal(X, X2)  torch.allclose(X, X2)
torch.cov(X)  X.renorm(2, D, 1.0)  torch.trapezoid(X)  torch.result_type(X, Y)
torch.can_cast(X.dtype, T)  X.var(D, correction=K)  torch.std_mean(X)  torch.polygamma(1, X)
torch.complex(F, F)  torch.view_as_real(X)  X.imag  X.conj()  torch.polar(F, F)
torch.arange(N, N, device=device)  torch.linspace(N, N, Z, device=device)
torch.full(S, N, device=device)  torch.full(S, N, dtype=T, device=device)
torch.eye(Z, K, device=device)  torch.cross(X, X2, dim=D)  torch.linalg.norm(X)
torch.logical_and(X, X2)  X.type_as(X2)  bool(X)  int(X)  float(X)
torch.arange(N, N, N, device=device)  torch.tensor(N, dtype=T, device=device)
torch.scalar_tensor(N, dtype=T, device=device)  len(X)  X.is_same_size(X2)
"""


def _templates() -> list[tuple[int, list[str]]]:
    ones = [f"{'F.' if n == 'relu' else 'torch.'}{n}(X)" for n in ONE.split()]
    twos = [f"torch.{n}(X, {y})" for n in TWO.split() for y in ("Y", "X2")]
    folds = [f"torch.{n}(X{a})" for n in FOLDS.split() for a in ("", ", D", ", D, keepdim=True")]
    parts = [[t.strip() for t in text.replace("\n", "  ").split("  ") if t.strip()]
             for text in (SHAPED, INDEXED, WRITES, MATHS)]  # fmt: skip
    return list(zip((2, 3, 3, 4, 4, 5, 4), (ones, twos, folds, *parts), strict=True))


TEMPLATES = _templates()
WRITING = {t.strip() for t in WRITES.replace("\n", "  ").split("  ")}
HOLE = re.compile(r"(?<![\w.'])(X2|X|F(?!\.)|[IBYNDKZSL]|T(?=[,)]))(?![\w'])")
GRADIENTS = "sum((t.real * 1.0).sum() for t in tensors() if t.requires_grad).backward()"


class Drawn:
    """A program as it is drawn: statements, and what they left in torch."""

    def __init__(self, seed: int) -> None:
        self.pick = random.Random(seed)
        self.lines: list[str] = []
        self.scope = scope(torch, "cpu")
        self.last = ""
        for _ in range(self.pick.randint(2, 4)):
            self.run(f"v{len(self.lines)} = {self.leaf()}")
        for _ in range(self.pick.randint(5, 15)):
            self.statement()
        if self.tensors(lambda t: t.requires_grad):
            self.lines += [GRADIENTS, "g = [t.grad for t in tensors() if t.is_leaf]"]

    def run(self, line: str) -> None:
        run(line, self.scope)
        self.lines.append(line)

    def leaf(self) -> str:
        pick = self.pick
        dtype, shape = pick.choice(DTYPES), pick.choice(SHAPES)
        text = tensor_text([literal(pick, dtype) for _ in range(math.prod(shape))], shape, dtype)
        if dtype in REALS and pick.random() < 0.3:
            return text + ".requires_grad_()"
        if pick.random() < 0.2 and shape:
            text += "[1:]" if len(shape) == 1 else ".mT"
        return text

    def statement(self) -> None:
        weights, groups = zip(*TEMPLATES, strict=True)
        template = self.pick.choice(self.pick.choices(groups, weights)[0])
        text = HOLE.sub(self.hole, template)
        self.run(text if template in WRITING else f"v{len(self.lines)} = {text}")

    def hole(self, match: re.Match[str]) -> str:
        pick, kind = self.pick, match[0]
        if kind in ("X", "X2") or (kind == "Y" and pick.random() < 0.6):
            self.last = self.tensor(lambda _: True)
            return self.last
        if kind in ("F", "I", "B"):
            dtypes = {"F": REALS, "I": WHOLE[:2], "B": ("bool",)}[kind]
            name = self.tensor(lambda t: str(t.dtype)[6:] in dtypes)
            return name if name and pick.random() < 0.5 else self.special(kind)
        if kind in ("D", "K", "Z"):
            dims = self.scope[self.last].dim() if self.last else 1
            dims = dims or 1
            low, high = {"D": (-dims, dims - 1), "K": (-1, 3), "Z": (0, 3)}[kind]
            return str(pick.randint(low, high))
        return pick.choice(CHOICES[kind])

    def special(self, kind: str) -> str:
        """An index, mask or tensor of reals that fits the last one, more often than not."""
        return f"({self.last} > 0)" if kind == "B" else self.pick.choice(CHOICES[kind])

    def tensors(self, wanted: Callable[[torch.Tensor], bool]) -> list[str]:
        return [n for n, v in self.scope.items() if isinstance(v, torch.Tensor) and wanted(v)]

    def tensor(self, wanted: Callable[[torch.Tensor], bool]) -> str:
        names = self.tensors(lambda t: t.numel() < 200 and wanted(t))
        return self.pick.choice(names) if names else ""


CHOICES = {
    "Y": NUMBERS, "N": NUMBERS, "S": [str(s) for s in SHAPES],
    "T": [f"torch.{d}" for d in DTYPES], "F": ["T([0.5, -1.5, 2.0])", "T(2.0)"],
    "I": ["T([0])", "T([1, 0])", "T([0, 0, 1])", "T([-1])", "T(0)", "T([[0]])", "T([[1, 0]])",
          "T([0, 3])", "T([0], dtype=torch.int32)"],
    "L": ["0", "-1", "1:", ":2", "::2", "None", "...", "5", "0:0", "[0, -1]", "[True, False]",
          "True", "T(0)", "T([1, 0])"],
}  # fmt: skip


def literal(pick: random.Random, dtype: str) -> Any:
    if dtype == "bool":
        return pick.random() < 0.5
    if dtype in WHOLE:
        edges = torch.iinfo(getattr(torch, dtype))
        return pick.choice([0, 1, 2, 3, 5, 100, edges.min, edges.max, max(edges.min, -1)])
    if dtype == "complex64":
        return complex(pick.randint(-2, 2), pick.randint(-2, 2))
    special = [math.nan, math.inf, -math.inf, -0.0, 0.0]
    return pick.choice(special) if pick.random() < 0.15 else pick.randint(-8, 8) / 4


def tensor_text(values: list[Any], shape: tuple[int, ...], dtype: str) -> str:
    if not values:
        return f"torch.zeros({shape}, dtype=torch.{dtype}, device=device)"
    for size in shape[:0:-1]:
        values = [values[i : i + size] for i in range(0, len(values), size)]
    text = re.sub(r"\b(nan|inf)\b", r"float('\1')", str(values if shape else values[0]))
    return f"T({text}, dtype=torch.{dtype})"


def scope(library: ModuleType, device: str) -> dict[str, Any]:
    names: dict[str, Any] = {"torch": library, "F": library.nn.functional, "device": device}
    names["T"] = partial(library.tensor, device=device)
    kind = library.Tensor
    names["tensors"] = lambda: [v for n, v in names.items() if isinstance(v, kind)]
    return names


def run(line: str, names: dict[str, Any]) -> BaseException | None:
    try:
        exec(line, names)
    except Exception as error:
        return error.with_traceback(None)
    return None


def known(names: dict[str, Any], library: ModuleType) -> dict[str, Any]:
    """What a program has in its variables, as plain data."""
    return {n: plain(v, library) for n, v in names.items() if re.fullmatch(r"v\d+|g", n)}


def plain(value: Any, library: ModuleType) -> Any:
    if isinstance(value, library.Tensor):
        value = value.detach().resolve_conj().resolve_neg()
        strides = tuple(s for s, n in zip(value.stride(), value.shape, strict=True) if n > 1)
        values = value.cpu().reshape(-1).tolist()
        return Values(str(value.dtype), tuple(value.shape), strides if values else (), values)
    if isinstance(value, tuple | list):
        return [plain(v, library) for v in value]
    return value if isinstance(value, int | float | complex | None.__class__) else str(value)


class Values:
    def __init__(
        self, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...], values: list[Any]
    ) -> None:
        self.dtype, self.shape, self.strides, self.values = dtype, shape, strides, values

    def __repr__(self) -> str:
        return f"{self.dtype[6:]} {self.shape} {self.strides} {self.values}"


VALUES = ("dtype", "shape", "strides", "values", "sign of zero", "result")
# Where the values differ and ours stand: how a statement looks, and why.
KNOWN = {
    r"polygamma": "torch's is off at the poles, where it is infinite",
    r"isin\(": "torch's fails for tensors of other strides",
    r"\b(v\d+)\b.*out=\(?\1\b": "torch reads what it has written already",
    r"^(v\d+)\.(addmm|masked_scatter|put|index_\w+|scatter\w*)_\(.*\b\1\b": "the same",
    r"median\(": "of no integers torch gives what NaN happens to become",
    r"ldexp\(": "torch cuts exponents to 32 bits",
    r"cov\(|trapezoid\(": "torch's sums of integers overflow",
    r"(kthvalue|topk|sort|median|mode)\(": "which of equal elements is told",
    r"logaddexp2?\(": "the sign of a zero that is rounded",
    r"(std|var)(_mean)?\(": "squares of large complex numbers overflow on npu",
    r"\.(to|type|int|long|short|char|byte)\(|as_tensor\(|\.copy_\(": "C++ does not define casts"
    " of NaN, and of what an integer does not hold",
    r"norm\((\w+, )?-?\d{3}": "powers past torch's float32; on cpu ours are float64",
    r"(pow_?\(|\*\*).*# .*torch complex\d+ .*nan": "0j ** 0j of two tensors, which C leaves open",
    r"(clamp|linspace).*# sign of zero": "which of two zeros is the larger, or the first",
}
STEPS = {"float64": 1e-9, "float16": 4e-3, "bfloat16": 3e-2}


def difference(got: Any, expected: Any) -> str:
    """What differs first: the kind, or nothing."""
    if isinstance(expected, list) and isinstance(got, list) and len(got) == len(expected):
        return next(filter(None, map(difference, got, expected)), "")
    if isinstance(expected, Values) and isinstance(got, Values):
        for kind in ("dtype", "shape", "strides"):
            if getattr(got, kind) != getattr(expected, kind):
                return kind
        step = STEPS.get(expected.dtype[6:], 2e-5)
        sizes = [size for v in expected.values if (size := magnitude(v)) < math.inf]
        return differing(got.values, expected.values, step, max([1e-3, *sizes]))
    if isinstance(expected, float | complex) and isinstance(got, float | complex):
        return differing([got], [expected], 2e-5, 1.0)
    return "" if type(got) is type(expected) and got == expected else "result"


def magnitude(value: complex) -> float:
    """The size of a number; abs() of a complex one may overflow."""
    return max(abs(value.real), abs(value.imag)) if isinstance(value, complex) else abs(value)


def differing(got: list[Any], expected: list[Any], step: float, size: float) -> str:
    for a, b in zip(got, expected, strict=True):
        if repr(a) == repr(b):
            continue
        if isinstance(b, int) or (not isinstance(b, complex) and b in (0, math.inf, -math.inf)):
            if a != b and not (b == 0 and not isinstance(b, int) and magnitude(a) <= step * size):
                return "values"
            if b == 0 and a == 0 and math.copysign(1, a) != math.copysign(1, b):
                return "sign of zero"
        elif (a != a) != (b != b) or (
            a == a and not magnitude(a - b) <= step * (magnitude(b) + size)
        ):
            return "values"
    return ""


def same_class(error: BaseException, expected: BaseException) -> bool:
    name = type(expected).__name__
    name = {"OutOfMemoryError": "RuntimeError", "_LinAlgError": "RuntimeError"}.get(name, name)
    name = "RuntimeError" if name in ("NotImplementedError", "LinAlgError") else name
    return name in [c.__name__ for c in type(error).__mro__]


class Difference:
    def __init__(self, at: int, kind: str, detail: str, exact: bool) -> None:
        self.at, self.kind, self.detail, self.exact = at, kind, detail, exact


def compare(lines: list[str], device: str) -> Difference | None:
    """The first statement with another outcome than in torch."""
    theirs, ours = scope(torch, "cpu"), scope(mindtorch, device)
    exact = True
    for at, line in enumerate(lines):
        expected, got = run(line, theirs), run(line, ours)
        if expected or got:
            if got and expected and same_class(got, expected):
                if re.match(r"v\d+ = ", line):
                    continue
                return None  # a write may have begun before it was refused
            if device == "npu" and may_differ_on_npu(got, expected):
                return None
            kind = "refused" if not expected else "taken" if not got else "class"
            return Difference(at, kind, f"mindtorch {got!r}, torch {expected!r}", exact)
        try:
            before, after = known(theirs, torch), known(ours, mindtorch)
        except RuntimeError as error:
            if "507015" not in str(error):
                raise
            mindtorch.npu.restart_device(0)
            return None  # an index out of range: of empty tensors torch does not look at them
        for name, value in before.items():
            if kind := difference(after.get(name), value):
                detail = f"{name}: mindtorch {after.get(name)}, torch {value}"
                return Difference(at, kind, detail, exact)
            exact = exact and repr(after[name]) == repr(value)
    return None


def may_differ_on_npu(got: BaseException | None, expected: BaseException | None) -> bool:
    """Whether CANN takes fewer or other dtypes here, or tells what is wrong when it is awaited."""
    if got is not None:
        return expected is None and any(word in str(got) for word in ("NPU", "npu", "aclnn"))
    if isinstance(expected, NotImplementedError):
        return True
    try:
        mindtorch.npu.synchronize()
    except RuntimeError as error:
        mindtorch.npu.restart_device(0)
        return "507015" in str(error) and "out of" in str(expected)
    return False


def shortened(lines: list[str], device: str) -> tuple[list[str], Difference] | None:
    """The statements that a difference takes; None where it was only the drift of roundings."""
    if (last := compare(lines, device)) is None:
        return None
    lines = lines[: last.at + 1]
    alone = [*literals(lines[:-1], lines[-1]), lines[-1]]
    if (single := compare(alone, device)) and single.at == len(alone) - 1:
        lines, last = alone, single
    elif not last.exact:
        return None
    for at in reversed(range(len(lines) - 1)):
        fewer = [*lines[:at], *lines[at + 1 :]]
        again = compare(fewer, device)
        if again and again.at == len(fewer) - 1 and again.kind == last.kind:
            lines, last = fewer, again
    return lines, last


def literals(lines: list[str], last: str) -> list[str]:
    """Leaves with the values that a statement's tensors have in torch when it is reached."""
    names = scope(torch, "cpu")
    for line in lines:
        run(line, names)
    texts = []
    for name in sorted(set(re.findall(r"v\d+", last.partition(" = ")[2] + " " + last))):
        if isinstance(value := names.get(name), torch.Tensor):
            flat, dtype = value.detach().resolve_conj().reshape(-1).tolist(), str(value.dtype)[6:]
            texts.append(f"{name} = {tensor_text(flat, tuple(value.shape), dtype)}")
    return texts


def bound_memory() -> None:
    """Some statements ask for more memory than any machine has: both libraries say so."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * 4096 + (2 << 30), resource.RLIM_INFINITY))


def stands(what: Difference, line: str) -> bool:
    """Whether another value is known, and ours stands."""
    told = f"{line} # {what.kind} {what.detail}"
    return what.kind in VALUES and any(re.search(form, told) for form in KNOWN)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", action="append", choices=("cpu", "npu"))
    parser.add_argument("--values", action="store_true", help="judge results, not refusals")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    bound_memory()
    kinds: Counter[str] = Counter()
    shown: set[tuple[str, str, str]] = set()
    for seed in range(options.seed, options.seed + options.programs):
        lines = Drawn(seed).lines
        for device in options.device or ("cpu", "npu"):
            if (result := shortened(lines, device)) is None:
                continue
            lines_left, what = result
            if stands(what, lines_left[-1]) or (options.values and what.kind not in VALUES):
                continue
            kinds[what.kind] += 1
            form = re.sub(r"v\d+|\d+", "v", lines_left[-1])
            if (device, what.kind, form) not in shown:
                shown.add((device, what.kind, form))
                print(f"{device} {seed} {what.kind}: {' ;; '.join(lines_left)}\n    {what.detail}")
    print(f"{options.programs} programs, {sum(kinds.values())} differ: {dict(kinds)}")
    return min(1, kinds.total())


if __name__ == "__main__":
    sys.exit(main())
