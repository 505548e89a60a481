"""Owns Jacobians and Hessians as functions of functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any

from .._autograd.forward import refuse_whole
from .._autograd.grad_mode import LOCAL
from .._tensor.tensor import Tensor
from ..ops.spec import aten
from ..utils._pytree import TreeSpec, tree_flatten, tree_map_only, tree_unflatten
from .batches import refuse_randomness, vmap
from .derivatives import argument_numbers, pullback, refuse_others, refuse_outputs


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
    forward: bool = False,
) -> Callable[..., Any]:
    @wraps(func)
    def inside(*args: Any) -> Any:
        numbers = argument_numbers(argnums, args)
        title = "jacfwd" if forward else "jacrev"
        _refuse_complex(title, "inputs", tree_flatten(args)[0])

        def output(*values: Any) -> Any:
            arguments = list(args)
            for n, value in zip(numbers, values, strict=True):
                arguments[n] = value
            return func(*arguments)

        primals = tuple(args[n] for n in numbers)
        if forward:
            for leaf in tree_flatten(primals)[0]:
                leaf.numel()  # AttributeError for what is no tensor
        value, product, *aux = pullback(output, primals, has_aux, refuse, name, forward)
        outs, spec = tree_flatten(value)
        _refuse_complex(title, "outputs", outs)
        rows = [_rows(outs, spec, product, k) for k in range(len(outs))]
        if forward:
            rows = [_column_major(row, outs[k].dim()) for k, row in enumerate(rows)]
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


def _column_major(row: tuple[Any, ...], rank: int) -> tuple[Any, ...]:
    """Jacobians with the memory layout of forward mode: an input's element after the other."""

    def laid_out(jacobian: Tensor) -> Tensor:
        dims = range(jacobian.dim())
        inner = jacobian.permute((*dims[rank:], *dims[:rank])).contiguous()
        return inner.permute((*dims[len(dims) - rank :], *dims[: len(dims) - rank]))

    columns: tuple[Any, ...] = tree_map_only(Tensor, laid_out, row)
    return columns


def jacfwd(
    func: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """jacrev, but for its refusal: derivatives are reverse mode here."""
    name = "jvp(f, primals, tangents)"
    refuse = partial(refuse_others, name=name)
    jacobian = _reverse(func, argnums, has_aux, refuse, name, True)

    @wraps(func)
    def inside(*args: Any) -> Any:
        refuse_randomness(randomness)
        numbers = argument_numbers(argnums, args)
        refuse_whole("primal", *tree_flatten([args[n] for n in numbers])[0])
        before, LOCAL.randomness = LOCAL.randomness, randomness
        try:
            return jacobian(*args)
        finally:
            LOCAL.randomness = before

    return inside


def hessian(func: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """A function that gives the second derivatives of `func`."""
    return jacfwd(jacrev(func, argnums), argnums)
