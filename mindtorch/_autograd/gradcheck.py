"""Owns gradcheck: derivatives against central differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._compat.warn_once import warn
from .._tensor import dtype as dt
from .._tensor.device import CPU
from .._tensor.geometry import contiguous
from .._tensor.subclass import DOOR
from .._tensor.tensor import Tensor, adopt
from .._tensor.types import Array
from ..ops.spec import aten
from .surface import grad


class GradcheckError(RuntimeError):
    """A derivative differs from the differences; the message shows both Jacobians."""

    __module__ = "torch.autograd.gradcheck"


def gradcheck(
    func: Callable[..., Any],
    inputs: tuple[Tensor, ...],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether gradients of `func` agree with differences of step `eps` (float64 inputs).

    With `check_forward_ad` tangents are looked at too, without `check_backward_ad` they alone.
    GradcheckError, or False without `raise_exception`, where they differ, or where two passes
    differ by more than `nondet_tol`. Every element is looked at, with `fast_mode` too.
    """
    if not check_forward_ad and not check_backward_ad:
        raise AssertionError(
            "Expected at least one of check_forward_ad or check_backward_ad to be True"
        )
    for batched, needs, what in (
        (check_batched_grad, check_backward_ad, ("check_batched_grad", "check_backward_ad")),
        (check_batched_forward_grad, check_forward_ad,
         ("check_batched_forward_grad", "check_forward_ad")),
    ):  # fmt: skip
        if batched and not needs:
            raise AssertionError(f"Setting {what[0]}=True requires {what[1]} to be True")
    sources: Sequence[Any] = inputs if isinstance(inputs, tuple | list) else (inputs,)
    func, arguments = _on_values(func, sources)
    try:
        _check(
            func, arguments, eps, atol, rtol, nondet_tol, check_forward_ad, check_backward_ad,
            fast_mode,
        )  # fmt: skip
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check(
    func: Callable[..., Any], arguments: Sequence[Any], eps: float, atol: float, rtol: float,
    nondet_tol: float, check_forward_ad: bool, check_backward_ad: bool, fast_mode: bool,
) -> None:  # fmt: skip
    _refuse_overlap(arguments)
    _warn_of_precision(arguments)
    if not any(isinstance(t, Tensor) and t.requires_grad for t in arguments):
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have"
            " requires_grad=True."
        )
    result = func(*arguments)
    outs = result if isinstance(result, tuple | list) else (result,)
    differentiable = [o for o in outs if o.requires_grad]
    if any(o.is_sparse for o in differentiable):
        raise ValueError(
            "Sparse output is not supported at gradcheck yet. Please call"
            " to_dense(masked_grad=...) on the output of fn for gradcheck."
        )
    for number, tensor in enumerate(arguments):
        if not isinstance(tensor, Tensor) or not tensor.requires_grad:
            continue
        quick = fast_mode and check_backward_ad and not check_forward_ad and differentiable
        if quick and _agree_along(func, arguments, number, outs, eps, atol, rtol):
            continue
        slopes = _numeric(func, arguments, tensor, eps)
        if not differentiable and any(s.any() for s in slopes):
            raise GradcheckError("Numerical gradient for function expected to be zero")
        pairs = (
            _by_backward(func, arguments, number, slopes, nondet_tol) if check_backward_ad else []
        )
        if check_forward_ad:
            forward = _forward(func, arguments, number)
            pairs += [(k, " computed with forward mode", "", row, slopes[k])
                      for k, row in forward.items()]  # fmt: skip
        for k, way, part, analytic, numeric in pairs:
            if not np.allclose(analytic, numeric, rtol, atol):
                what = f"{part}Jacobian{way}"
                if fast_mode and not (way or part or tensor.is_complex()):
                    sums = _along(func, arguments, number, k, eps)[1:3]
                    slow = _SLOW.format(
                        _tensor(numeric), _tensor(analytic), np.abs(numeric - analytic).max()
                    )
                    raise GradcheckError(_mismatch(what, k, number, *sums) + slow)
                raise GradcheckError(
                    _mismatch(what, k, number, _tensor(analytic), _tensor(numeric))
                )


def _on_values(
    func: Callable[..., Any], arguments: Sequence[Any]
) -> tuple[Callable[..., Any], Sequence[Any]]:
    """The function of the values that sparse arguments have, and these values: what is absent is
    not looked at."""
    sparse: dict[int, Any] = {
        n: t for n, t in enumerate(arguments)
        if isinstance(t, Tensor) and t.requires_grad and str(t.layout).startswith("torch.sparse")
    }  # fmt: skip
    if not sparse:
        return func, arguments
    from ..sparse._tensor import with_values  # it is loaded: there is a tensor of it

    def of_values(*values: Any) -> Any:
        pairs = enumerate(values)
        return func(*(with_values(sparse[n], v) if n in sparse else v for n, v in pairs))

    leaves = [t._differentiable if n in sparse else t for n, t in enumerate(arguments)]
    return of_values, leaves


def _refuse_overlap(arguments: Sequence[Any]) -> None:
    for number, value in enumerate(arguments):
        if not (isinstance(value, Tensor) and value.requires_grad):
            continue
        pairs = zip(value.stride(), value.shape, strict=True)
        if any(stride <= 0 and size > 1 for stride, size in pairs):
            raise RuntimeError(
                f"The {number}th input has a dimension with stride 0. gradcheck only supports"
                " inputs that are non-overlapping to be able to compute the numerical gradients"
                " correctly. You should call .contiguous on the input before passing it to"
                " gradcheck."
            )


_REENTRANT = """Backward is not reentrant, i.e., running backward with same input and grad_output \
multiple times gives different values, although analytical gradient matches numerical gradient.\
The tolerance for nondeterminism was {}.

NOTE: If your op relies on non-deterministic operations i.e., it is listed here:
https://pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html
this failure might be expected.

If you are adding a new operator, please file an issue and then use one of the
workarounds. The workaround depends on how your test invokes gradcheck/gradgradcheck.
If the test
- manually invokes gradcheck/gradgradcheck, then call gradcheck/gradgradcheck
  with `nondet_tol=<tol>` as a keyword argument.
- is OpInfo-based (e.g., in test_ops_gradients.py), then modify the OpInfo for the test
  to have `gradcheck_nondet_tol=<tol>`.
- is a Module test (e.g., in common_nn.py), then modify the corresponding
  module_test entry to have `gradcheck_nondet_tol=<tol>`
"""


def _warn_of_precision(arguments: Sequence[Any]) -> None:
    for number, value in enumerate(arguments):
        if not (isinstance(value, Tensor) and value.requires_grad):
            continue
        if value.dtype not in (dt.float64, dt.complex128):
            warn(
                f"Input #{number} requires gradient and is not a double precision floating point or"
                " complex. This check will likely fail if all the inputs are not of double"
                " precision floating point or complex. ",
            )


def _values(tensor: Tensor) -> Array:
    """The elements in order, in one dimension; of a class without memory what it says of them."""
    values: Tensor = tensor.detach()
    if str(values.layout) != "torch.strided":
        values = values.to_dense()
    if DOOR["is_wrapper"](values):
        values = aten.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
        values.copy_(tensor.detach())
    array: Array = values.cpu().numpy()
    return array.reshape(-1)


def _tensor(array: Array) -> Tensor:
    dtype = dt.from_numpy_dtype(array.dtype)
    return adopt(
        contiguous(array.shape, dtype, CPU), np.ascontiguousarray(array).reshape(array.shape)
    )


def _mismatch(
    what: str, k: int, number: int, analytic: Tensor | float, numeric: Tensor | float
) -> str:
    return (
        f"{what} mismatch for output {k} with respect to input {number},\n"
        f"numerical:{numeric}\nanalytical:{analytic}\n"
    )


_SLOW = (
    "\nThe above quantities relating the numerical and analytical jacobians are computed \nin fast"
    " mode. See: https://github.com/pytorch/pytorch/issues/53876 for more background \nabout fast"
    " mode. Below, we recompute numerical and analytical jacobians in slow mode:\n\nNumerical:\n {}"
    "\nAnalytical:\n{}\n\nThe max per-element difference (slow mode) is: {}.\n"
)
# Of a generator that nobody seeded: torch's default (c10/core/GeneratorImpl.h).
_SEED = 67280421310721


def _along(
    func: Callable[..., Any], arguments: Sequence[Any], number: int, k: int, eps: float
) -> tuple[float, float, float, float]:
    """vᵀJu by backward, twice, and by differences, for the vectors that torch's fast mode draws,
    and the product of the vectors' sums."""
    words = np.random.RandomState(_SEED & 0xFFFFFFFF)

    def random_array(tensor: Tensor) -> Array:
        bits = words.randint(0, 1 << 32, tensor.numel(), dtype=np.uint32) & 0xFFFFFF
        vector = bits.astype(np.float64) / (1 << 24)
        return vector / np.linalg.norm(vector)

    outs = _outputs(func, arguments)
    leaves = {n: t for n, t in enumerate(arguments) if isinstance(t, Tensor) and t.requires_grad}
    along = {n: random_array(t) for n, t in leaves.items()}[number]
    across = {n: random_array(o) for n, o in enumerate(outs) if o.requires_grad}[k]
    tensor, out = leaves[number], outs[k]
    weight = aten.to(_tensor(across.reshape(out.shape)), out.device, out.dtype)

    def slope() -> float:
        (gradient,) = grad(out, tensor, weight, allow_unused=True, retain_graph=True)
        return 0.0 if gradient is None else float(_values(gradient) @ along)

    analytic, again = slope(), slope()
    data, step = tensor.detach(), aten.to(_tensor(along.reshape(tensor.shape)), tensor.device)
    before, sides = data.clone(), []
    for sign in (-1, 1):
        data.copy_(before + step * (sign * eps))
        sides.append(_values(_outputs(func, arguments)[k]))
    data.copy_(before)
    numeric = float(across @ ((sides[1] - sides[0]) / (2 * eps)))
    return analytic, again, numeric, float(across.sum() * along.sum())


def _agree_along(
    func: Callable[..., Any], arguments: Sequence[Any], number: int, outs: Sequence[Any],
    eps: float, atol: float, rtol: float,
) -> bool:  # fmt: skip
    """Whether real gradients agree with differences along one direction of input and outputs.

    The Jacobians of what does not are computed whole, for the message.
    """
    if any(t.is_complex() for t in (arguments[number], *outs)):
        return False
    for k, out in enumerate(outs):
        if out.requires_grad:
            analytic, again, numeric, size = _along(func, arguments, number, k, eps)
            if analytic != again or not np.isclose(analytic, numeric, rtol, atol * size):
                return False
    return True


def _outputs(func: Callable[..., Any], arguments: Sequence[Any]) -> list[Tensor]:
    result = func(*arguments)
    outs = result if isinstance(result, tuple | list) else (result,)
    return [o for o in outs if isinstance(o, Tensor)]


def _directions(tensor: Tensor) -> tuple[complex, ...]:
    """Along which each element moves: a complex one in its imaginary part too."""
    return (1, 1j) if tensor.is_complex() else (1,)


def _numeric(
    func: Callable[..., Any], arguments: Sequence[Any], tensor: Tensor, eps: float
) -> list[Array]:
    """Differences of all outputs, [elements of the input × directions, elements of the output]."""
    data = tensor.detach()
    columns: list[list[Array]] = []
    for at in np.ndindex(tuple(data.shape)):
        original = data[at].item()
        for direction in _directions(tensor):
            sides = []
            for sign in (1, -1):
                data[at] = original + sign * eps * direction
                sides.append([_values(o).copy() for o in _outputs(func, arguments)])
            columns.append([(a - b) / (2 * eps) for a, b in zip(*sides, strict=True)])
        data[at] = original
    return [np.array(rows) for rows in zip(*columns, strict=True)]


def _by_backward(
    func: Callable[..., Any], arguments: Sequence[Any], number: int, slopes: list[Array],
    nondet_tol: float,
) -> list[tuple[int, str, str, Array, Array]]:  # fmt: skip
    """(output, "", part, Jacobian, differences) of the outputs that record gradients.

    The gradient of a real number by a complex z = x + iy is its slope by x plus i times that by y;
    parts of a complex output are real numbers each, the imaginary one is looked at first.
    """
    tensor, pairs = arguments[number], []
    for k, out in enumerate(_outputs(func, arguments)):
        if not out.requires_grad:
            continue
        views = [(aten.imag, np.imag, "imaginary"), (aten.real, np.real, "real")]
        for part, host, name in views if out.is_complex() else [(None, np.real, "")]:
            slope = host(slopes[k])
            if tensor.is_complex():
                slope = slope[0::2] + 1j * slope[1::2]
            text = f"While considering the {name} part of complex outputs only, " if name else ""
            analytic = _analytic(part(out) if part else out, tensor)
            again = _analytic(part(out) if part else out, tensor)
            if analytic.size and np.abs(analytic - again).max() > nondet_tol:
                raise GradcheckError(_REENTRANT.format(nondet_tol))
            pairs.append((k, "", text, analytic, slope))
    return pairs


def _forward(func: Callable[..., Any], arguments: Sequence[Any], number: int) -> dict[int, Array]:
    """Jacobians from tangents, one element and direction of the input after the other."""
    from ..autograd.forward_ad import dual_level, make_dual, unpack_dual

    tensor = arguments[number].detach()
    rows: dict[int, list[Array]] = {}
    for at in np.ndindex(tuple(tensor.shape)):
        for direction in _directions(tensor):
            tangent = aten.zeros_like(tensor)
            tangent[at] = direction
            with dual_level():
                values = list(arguments)
                values[number] = make_dual(tensor, tangent)
                for k, out in enumerate(_outputs(func, values)):
                    moved = unpack_dual(out).tangent
                    zeros = np.zeros(out.numel())
                    row = zeros if moved is None else _values(moved)
                    rows.setdefault(k, []).append(row)
    return {k: np.array(row) for k, row in rows.items()}


def _analytic(out: Tensor, tensor: Tensor) -> Array:
    rows = []
    for at in np.ndindex(tuple(out.shape)):
        weight = aten.zeros_like(out).detach()
        weight[at] = 1.0
        (gradient,) = grad(out, tensor, weight, retain_graph=True, allow_unused=True)
        zeros = np.zeros(tensor.numel())
        rows.append(zeros if gradient is None else _values(gradient))
    return np.array(rows).T


def _drawn_like(out: Tensor) -> Tensor:
    """Numbers between -1 and 1, drawn as torch draws them: programs see where the stream stands."""
    if out.is_complex():
        return aten.view_as_complex(_drawn_like(aten.view_as_real(out)))
    return aten.empty_like(out).uniform_(-1, 1)


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    grad_outputs: Tensor | Sequence[Tensor] | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Whether gradients of gradients of `func` agree with differences.

    They are taken by the inputs and by `grad_outputs`, which are drawn where none are given.
    """
    arguments = tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,)
    if not any(isinstance(t, Tensor) and t.requires_grad for t in arguments):
        return True
    if grad_outputs is None:
        differentiable = [o for o in _outputs(func, arguments) if o.requires_grad]
        weights: list[Any] = [_drawn_like(o.detach()) for o in differentiable]
        if gen_non_contig_grad_outputs:
            weights = [w.repeat_interleave(2, -1)[..., ::2] if w.ndim else w for w in weights]
        weights = [w.requires_grad_() for w in weights]
    else:
        weights = list(grad_outputs) if isinstance(grad_outputs, tuple | list) else [grad_outputs]
    count = len(arguments)
    places = [i for i, t in enumerate(arguments) if isinstance(t, Tensor) and t.requires_grad]

    def first(*values: Any) -> tuple[Tensor, ...]:
        leaves = [values[i].requires_grad_() for i in places]  # tangents alone leave it off
        outs = [o for o in _outputs(func, values[:count]) if o.requires_grad]
        grads = grad(outs, leaves, values[count:], create_graph=True, allow_unused=True)
        return tuple(g for g in grads if g is not None and g.requires_grad)

    return gradcheck(
        first, (*arguments, *weights), eps=eps, atol=atol, rtol=rtol, nondet_tol=nondet_tol,
        raise_exception=raise_exception, check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes, check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode, masked=masked,
    )  # fmt: skip
