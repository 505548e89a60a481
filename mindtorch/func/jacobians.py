"""Owns Jacobians and Hessians as functions of functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from .._autograd.forward import refuse_whole
from .._tensor.tensor import Tensor
from ..ops.spec import aten
from ..utils._pytree import TreeSpec, tree_flatten, tree_map, tree_unflatten
from .batches import refuse_randomness, vmap
from .derivatives import argument_numbers, pullback, pushforward, refuse_outputs


def jacrev(
    func: Callable[..., Any], argnums: int | Sequence[int] = 0, *, has_aux: bool = False,
    chunk_size: int | None = None, _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """A function that gives the Jacobian of `func`: shape of the output, then of the argument."""
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")
    return _reverse(func, argnums, has_aux, refuse_outputs, "vjp(f, *primals)")


def _reverse(
    func: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool,
    refuse: Callable[[Any], None],
    name: str,
) -> Callable[..., Any]:
    @wraps(func)
    def inside(*args: Any) -> Any:
        numbers = argument_numbers(argnums, args)
        _refuse_complex("jacrev", "inputs", tree_flatten(args)[0])

        def output(*values: Any) -> Any:
            arguments = list(args)
            for n, value in zip(numbers, values, strict=True):
                arguments[n] = value
            return func(*arguments)

        primals = tuple(args[n] for n in numbers)
        value, product, *aux = pullback(output, primals, has_aux, refuse, name)
        outs, spec = tree_flatten(value)
        _refuse_complex("jacrev", "outputs", outs)
        rows = [_rows(outs, spec, product, k) for k in range(len(outs))]
        jacobian = tree_unflatten(
            [row[0] if isinstance(argnums, int) else row for row in rows], spec
        )
        return (jacobian, *aux) if has_aux else jacobian

    return inside


def _refuse_complex(name: str, what: str, leaves: Sequence[object]) -> None:
    """RuntimeError in torch's words: a Jacobian of complex numbers would be two."""
    for at, leaf in enumerate(leaves):
        if isinstance(leaf, Tensor) and leaf.is_complex():
            raise RuntimeError(
                f"{name}: Expected all {what} to be real but received complex tensor at flattened"
                f" input idx: {at}"
            )


def _rows(outs: list[Any], spec: TreeSpec, product: Callable[..., Any], k: int) -> tuple[Any, ...]:
    """The Jacobian of output `k` with respect to each argument."""
    out = outs[k]
    number = out.numel()

    def row(cotangent: Tensor) -> Any:
        weights = [cotangent if i == k else aten.zeros_like(o) for i, o in enumerate(outs)]
        return product(tree_unflatten(weights, spec))

    if not number:
        parts, inner = tree_flatten(row(aten.zeros_like(out)))
        columns = [
            aten.zeros((*out.shape, *p.shape), dtype=p.dtype, device=p.device) for p in parts
        ]
    else:
        basis = aten.eye(number, number, dtype=out.dtype, device=out.device)
        parts, inner = tree_flatten(vmap(row)(basis.reshape((number, *out.shape))))
        columns = [p.reshape(tuple(out.shape) + tuple(p.shape[1:])) for p in parts]
    return tuple(tree_unflatten(columns, inner))


def jacfwd(
    func: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """As jacrev, by one batch of Jacobian-vector products: for few inputs and many outputs."""

    @wraps(func)
    def inside(*args: Any) -> Any:
        refuse_randomness(randomness)
        numbers = argument_numbers(argnums, args)
        primals = tuple(args[n] for n in numbers)
        leaves, inputs = tree_flatten(primals)
        refuse_whole("primal", *leaves)
        _refuse_complex("jacfwd", "inputs", tree_flatten(args)[0])
        sizes = [leaf.numel() for leaf in leaves]  # AttributeError for what is no tensor

        def output(*values: Any) -> Any:
            arguments = list(args)
            for n, value in zip(numbers, values, strict=True):
                arguments[n] = value
            return func(*arguments)

        value, push, *aux = pushforward(output, primals, has_aux, mapped=True)
        _refuse_complex("jacfwd", "outputs", tree_flatten(value)[0])
        directions = [
            aten.eye(sum(sizes), dtype=leaf.dtype, device=leaf.device)
            .narrow(1, sum(sizes[:k]), n)
            .reshape((sum(sizes), *leaf.shape))
            for k, (leaf, n) in enumerate(zip(leaves, sizes, strict=True))
        ]

        def parts(out: Tensor) -> object:
            columns = out.contiguous().movedim(0, -1).split(sizes, -1)
            each = [c.reshape((*c.shape[:-1], *leaf.shape))
                    for c, leaf in zip(columns, leaves, strict=True)]  # fmt: skip
            row = tree_unflatten(each, inputs)
            return row[0] if isinstance(argnums, int) else row

        jacobian = tree_map(parts, vmap(push)(*directions))
        return (jacobian, *aux) if has_aux else jacobian

    return inside


def hessian(func: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """A function that gives the second derivatives of `func`."""
    return jacfwd(jacrev(func, argnums), argnums)
