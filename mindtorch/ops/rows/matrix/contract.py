"""Rows of einsum, tensordot and their like: products that only rearrange for matmul."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod
from string import ascii_lowercase, ascii_uppercase

from ...._compat.class_names import class_name
from ...._compat.unsupported_dtypes import kernel, several_dtypes
from ...._compat.warn_once import warn_once
from ...costs import product
from ...rules import result_type
from ...words import *
from .matmul import refuse_batches


@composite(
    "tensordot(Tensor a, Tensor b, Any dims=2) -> Tensor",
    unsupported={"bool": kernel("addmm_impl_cpu_", unless=several_dtypes)},
    samples=calls(
        (Arg((2, 3, 4)), Arg((3, 4, 2))),
        (Arg((2, 3)), Arg((4, 2)), ((0,), (1,))),
        (Arg((2, 3)), Arg((4, 1)), ((0,), (1,))),
        Sample((Arg((2, 3)), Arg((4, 2)), 1), error=True),
    ),
    tolerance="accumulated",
    out="tensordot: Expected the output tensor to have dtype {Want}, but got an output tensor with"
    " dtype {Got}",
)
def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """The sum of products over `dims`: a count, or the dimensions of `a` and of `b`."""
    if isinstance(dims, Tensor) and dims.numel() == 1:
        dims = int(dims.item())
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.ndim, b.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        dims = (tuple(range(a.ndim - dims, a.ndim)), tuple(range(dims)))
        dims = ([d - a.ndim for d in dims[0]], dims[1])
    if len(dims[0]) != len(dims[1]):
        raise RuntimeError("both dimension lists should have same length")
    if a.dtype is not b.dtype:
        raise RuntimeError("both inputs should have same dtype")
    left = [wrap_dim(d, a.ndim) for d in dims[0]]
    right = [wrap_dim(d, b.ndim) for d in dims[1]]
    for at, (d, e) in enumerate(zip(left, right, strict=True)):
        if a.shape[d] == 1 != b.shape[e]:
            b = b.sum(e, keepdim=True, dtype=b.dtype)
        elif b.shape[e] == 1 != a.shape[d]:
            a = a.sum(d, keepdim=True, dtype=a.dtype)
        elif a.shape[d] != b.shape[e]:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {a.shape[d]} in dim"
                f" {dims[0][at]} and second has size {b.shape[e]} in dim {dims[1][at]}"
            )
    keep_a = [d for d in range(a.ndim) if d not in left]
    keep_b = [d for d in range(b.ndim) if d not in right]
    inner = prod(a.shape[d] for d in left)
    shape = tuple(a.shape[d] for d in keep_a) + tuple(b.shape[d] for d in keep_b)
    across, down = prod(shape[len(keep_a) :]), prod(shape[: len(keep_a)])
    rows = aten.reshape(aten.permute(a, (*keep_a, *left)), (down, inner))
    columns = aten.reshape(aten.permute(b, (*right, *keep_b)), (inner, across))
    return aten.reshape(aten.mm(rows, columns), shape)


def _letters(spec: str, ndim: int, at: int) -> list[str]:
    """One label per dimension; those under an ellipsis are counted from its end."""
    if "..." not in spec:
        if len(spec) != ndim:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(spec)})"
                f" does not match the number of dimensions ({ndim}) for operand {at} and no"
                " ellipsis was given"
            )
        return list(spec)
    head, tail = spec.split("...")
    hidden = ndim - len(head) - len(tail)
    return [*head, *(f".{hidden - i}" for i in range(hidden)), *tail]


def _output(labels: Sequence[list[str]], arrow: str | None) -> list[str]:
    flat = [x for row in labels for x in row]
    dots = sorted({x for x in flat if x[0] == "."}, key=lambda x: -int(x[1:]))
    if arrow is None:
        return [*dots, *sorted({x for x in flat if x[0] != "." and flat.count(x) == 1})]
    letters: list[str] = []
    for part in arrow.replace("...", "@"):
        letters += dots if part == "@" else [part]
    return letters


def _check_equation(equation: str) -> None:
    """RuntimeError in torch's words for what is no letter, arrow, comma or ellipsis."""
    left, arrow, right = equation.partition("->")
    sides = [(side, f"operand {i}") for i, side in enumerate(left.split(","))]
    sides += [(right, "output")] if arrow else []
    at = 0
    for side, place in sides:
        at = len(left) + 2 if place == "output" else at
        odd = re.search(r"[^a-zA-Z. ]", side)
        if odd:
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {at + odd.start()} in the equation"
                " string, subscripts must be in [a-zA-Z]"
            )
        _check_dots(side, place)
        at += len(side) + 1


def _check_dots(side: str, place: str) -> None:
    """RuntimeError in torch's words for dots that are no ellipsis, or another one."""
    if "." in side.replace("...", ""):
        end = " (...)" * (place == "output")
        raise RuntimeError(f"einsum(): found '.' for {place} that is not part of any ellipsis{end}")
    if side.count("...") > 1:
        second = {"output": "for output but an ellipsis (...) was already found"}
        message = second.get(place, f"for {place} for which an ellipsis was already found")
        raise RuntimeError(f"einsum(): found '.' {message}")


def _check_output(output: Sequence[str], labels: Sequence[list[str]]) -> None:
    """RuntimeError in torch's words for an output's subscript that is repeated or unknown."""
    for at, label in enumerate(output):
        if label in output[:at]:
            raise RuntimeError(
                f"einsum(): output subscript {label} appears more than once in the output"
            )
        if not any(label in row for row in labels):
            raise RuntimeError(
                f"einsum(): output subscript {label} does not appear in the equation for any input"
                " operand"
            )


def _check_sizes(tensors: Sequence[Tensor], labels: Sequence[list[str]]) -> None:
    """RuntimeError in torch's words for a subscript of two sizes; sizes of 1 are broadcast."""
    sizes: dict[str, int] = {}
    for operand, (tensor, row) in enumerate(zip(tensors, labels, strict=True)):
        sizes_here: dict[str, int] = {}
        for label, size in zip(row, tensor.shape, strict=True):
            if sizes_here.setdefault(label, size) != size:
                raise RuntimeError(
                    f"einsum(): subscript {label} is repeated for operand {operand} but the sizes"
                    f" don't match, {size} != {sizes_here[label]}"
                )
        for label, size in sizes_here.items():
            before = sizes.get(label, 1)
            if label[0] == "." and 1 not in (before, size) and before != size:
                raise RuntimeError(
                    f"einsum(): dimension {row.index(label)} covered by ellipsis in operand"
                    f" {operand}has size {size} which does not broadcast with previously seen"
                    f" ellipsis with size {before} for the respective dimension"
                )
            if 1 not in (before, size) and before != size:
                raise RuntimeError(
                    f"einsum(): subscript {label} has size {size} for operand {operand} which does"
                    f" not broadcast with previously seen size {before}"
                )
            sizes[label] = size if before == 1 else before


def _diagonals(t: Tensor, labels: list[str]) -> tuple[Tensor, list[str]]:
    """Repeated labels of one operand become one dimension."""
    for label in set(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            t = aten.diagonal(t, 0, first, second)
            labels = [x for i, x in enumerate(labels) if i not in (first, second)] + [label]
    return t, labels


def _aligned(t: Tensor, labels: list[str], order: Sequence[str]) -> Tensor:
    """`t` with a dimension for every label of `order`, of size 1 where it has none."""
    present = [x for x in order if x in labels]
    t = aten.permute(t, tuple(labels.index(x) for x in present))
    sizes = iter(t.shape)
    return aten.reshape(t, tuple(next(sizes) if x in labels else 1 for x in order))


def _sum_out(t: Tensor, labels: list[str], keep: set[str]) -> tuple[Tensor, list[str]]:
    gone = tuple(i for i, x in enumerate(labels) if x not in keep)
    return (aten.sum(t, gone), [x for x in labels if x in keep]) if gone else (t, labels)


def _pair(
    a: Tensor, la: list[str], b: Tensor, lb: list[str], keep: set[str], order: Sequence[str]
) -> tuple[Tensor, list[str]]:
    """Two operands into one: shared labels that stay are batches, others are contracted.

    `order` has all labels, those of the output first: the result's are laid out by it as far as
    that costs no copy, as torch's are (sumproduct_pair in ATen/native/Linear.cpp).
    """
    if a.dtype is not b.dtype and set(la) & set(lb) - keep:
        sizes = {**dict(zip(la, a.shape, strict=True)), **dict(zip(lb, b.shape, strict=True))}
        batch_labels = set(la) & set(lb) & keep
        refuse_batches(a.dtype, b.dtype, prod(sizes[x] for x in {*la, *lb} - batch_labels))

    a, la = _sum_out(a, la, keep | set(lb))
    b, lb = _sum_out(b, lb, keep | set(la))
    shared = [x for x in la if x in lb]
    batch = [x for x in order if x in shared and x in keep]
    inner = [x for x in order if x in shared and x not in keep]
    for x in [x for x in inner if a.shape[la.index(x)] != b.shape[lb.index(x)]]:
        # One side is of size 1 here: the other's sum is what it multiplies.
        (a, la), (b, lb) = _sum_out(a, la, {*la} - {x}), _sum_out(b, lb, {*lb} - {x})
        shared.remove(x)
        inner.remove(x)
    # A size of 1 on one side only is broadcast, which a product of matrices can't do.
    if not inner or any(a.shape[la.index(x)] != b.shape[lb.index(x)] for x in shared):
        both = [x for x in order if x in la or x in lb]
        product = _aligned(a, la, both) * _aligned(b, lb, both)
        return _sum_out(product, both, keep)
    size = {**dict(zip(la, a.shape, strict=True)), **dict(zip(lb, b.shape, strict=True))}
    if _swapped([x for x in order if x not in inner], la, lb, size):
        a, la, b, lb = b, lb, a, la
    rows = [x for x in order if x in la and x not in shared]
    columns = [x for x in order if x in lb and x not in shared]
    left = aten.permute(a, tuple(la.index(x) for x in (*batch, *rows, *inner)))
    right = aten.permute(b, tuple(lb.index(x) for x in (*batch, *inner, *columns)))
    n, m, k, c = (prod(size[x] for x in group) for group in (batch, rows, inner, columns))
    dtype = result_type((left._geom, right._geom))  # a sum of integers is of 64 bits
    left, right = aten.to(left, dtype), aten.to(right, dtype)
    product = aten.bmm(aten.reshape(left, (n, m, k)), aten.reshape(right, (n, k, c)))
    labels = [*batch, *rows, *columns]
    return aten.reshape(product, tuple(size[x] for x in labels)), labels


def _swapped(order: Sequence[str], la: list[str], lb: list[str], size: Mapping[str, int]) -> bool:
    """Whether all that the right operand has alone comes before what the left one has."""
    wide = [size.get(x, 1) != 1 for x in order]
    left = [i for i, x in enumerate(order) if wide[i] and x in la and x not in lb]
    right = [i for i, x in enumerate(order) if not wide[i] or x not in la]
    return bool(left and right) and right[-1] < left[0]


def _of_lists(first: Tensor, rest: Sequence[Any]) -> tuple[str, list[Tensor]]:
    """The equation and the operands of a call whose subscripts are lists of numbers."""
    if rest[0] is Ellipsis or isinstance(rest[0], int):
        rest = [rest]
    lists = ["".join(map(_subscript, part)) for part in rest[::2]]
    tensors = [first, *rest[1::2]]
    if len(rest) % 2:
        return ",".join(lists), tensors
    *tensors, last = tensors
    return f"{','.join(lists)}->{''.join(map(_subscript, last))}", tensors


def _subscript(number: Any) -> str:
    if number is Ellipsis:
        return "..."
    if 0 <= number < 52:
        return ascii_uppercase[number] if number < 26 else ascii_lowercase[number - 26]
    raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")


def _check_classes(equation: Any, operands: Sequence[Any]) -> None:
    if not isinstance(equation, str):
        raise TypeError(
            f"einsum(): argument 'equation' (position 1) must be str, not {class_name(equation)}"
        )
    for at, operand in enumerate(operands):
        if not isinstance(operand, Tensor):
            raise TypeError(
                f"expected Tensor as element {at} in argument 1, but got {class_name(operand)}"
            )


@composite(
    "einsum(str equation, Tensor[] operands) -> Tensor",
    variadic=True,
    samples=calls(
        ("bij,bjk->bik", [Arg((2, 3, 4)), Arg((2, 4, 2))]),
        ("ii->i", [Arg((3, 3))]),
        ("ij,j", [Arg((2, 3)), Arg((3,))]),
        ("...i,ij,j->...", [Arg((2, 3)), Arg((3, 4)), Arg((4,))]),
        Sample(("ij->i", [Arg((2,))]), error=True),
    ),
    tolerance="accumulated",
)
def einsum(equation: str | Tensor, operands: Sequence[Any]) -> Tensor:
    """Products summed by subscripts, such as "bij,bjk->bik"; operands are taken left to right.

    Or operands each before the list of its subscripts: `einsum(a, [0, 1], b, [1, 2], [0, 2])`.
    """
    if not operands:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one"
            " operand and its subscripts list"
        )
    if isinstance(equation, Tensor):
        equation, operands = _of_lists(equation, operands)
    tensors = list(operands)
    _check_classes(equation, tensors)
    _check_equation(equation)
    left, _, right = equation.replace(" ", "").partition("->")
    specs = left.split(",")
    if len(specs) != len(tensors):
        raise RuntimeError(
            "einsum(): more operands were provided than specified in the equation"
            if len(tensors) > len(specs)
            else "einsum(): fewer operands were provided than specified in the equation"
        )
    labels = [_letters(s, t.ndim, i) for i, (s, t) in enumerate(zip(specs, tensors, strict=True))]
    output = _output(labels, right if "->" in equation else None)
    _check_output(output, labels)
    _check_sizes(tensors, labels)
    every = [*output, *sorted({x for row in labels for x in row} - set(output))]
    t, label = _diagonals(tensors[0], labels[0])
    for i in range(1, len(tensors)):
        other, theirs = _diagonals(tensors[i], labels[i])
        later = {x for row in labels[i + 1 :] for x in row}
        t, label = _pair(t, label, other, theirs, set(output) | later, every)
    gone = [x for x in label if x not in output]
    order = tuple(label.index(x) for x in (*output, *gone))
    if len(tensors) > 1 and order == tuple(range(t.ndim)) and not gone:
        return t
    t = aten.permute(t, order)
    if gone:
        return aten.sum(t, tuple(range(len(output), t.ndim)))
    return t if len(tensors) == 1 else aten.view(t, t.shape)  # as torch's node is called


@composite(
    "chain_matmul(Tensor[] matrices) -> Tensor",
    variadic="alone",
    samples=calls(([Arg((2, 3)), Arg((3, 4)), Arg((4, 2))],)),
    # torch's own says that it is deprecated for linalg.multi_dot.
    oracle=lambda torch: lambda matrices: torch.linalg.multi_dot(list(matrices)),
    tolerance="accumulated",
    rule="products",
)
def chain_matmul(matrices: tuple[Tensor, ...]) -> Tensor:
    """The product of matrices, left to right."""
    warn_once(
        "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use"
        " torch.linalg.multi_dot instead, which accepts a list of two or more tensors rather than"
        " multiple parameters."
    )
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for matrix in matrices:
        if matrix.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {matrix.ndim}, expected 2 instead.")
    return matrices[0] if len(matrices) == 1 else aten.linalg_multi_dot(matrices)


composite(
    "vdot(Tensor self, Tensor other) -> Tensor",
    lambda self, other: aten.dot(aten.conj_of(self), other),
    autocast="as given on cpu",
    summary="Inner product of two vectors, the first conjugated: `[N], [N] → []`.",
    unsupported={"bool": "dot"},
    samples=calls((Arg((4,)), Arg((4,), low=-1))),
    tolerance="accumulated",
    out="result dtype {Got} does not match input dtype {Want}",
    cost=product("self"),
)
