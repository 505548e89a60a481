"""Rows of orthogonal polynomials by their recurrences, and of Chebyshev's by angles inside [-1, 1].

Recurrences: Abramowitz and Stegun, "Handbook of Mathematical Functions" (1964), table 22.7.
"""

from __future__ import annotations

from functools import cache
from math import isfinite

from ...rules import pointwise
from ...words import *
from ..pointwise.unary import scipy_special
from .functions import in_float32

Step = Callable[[int, Any], tuple[Any, Any]]


def _chebyshev(k: int, x: Any) -> tuple[Any, Any]:
    return x * 2, 1.0


def _hermite(k: int, x: Any) -> tuple[Any, Any]:
    return x * 2, 2.0 * (k - 1)


def _probabilists(k: int, x: Any) -> tuple[Any, Any]:
    return x, float(k - 1)


def _laguerre(k: int, x: Any) -> tuple[Any, Any]:
    return (-x + (2 * k - 1)) / k, (k - 1) / k


def _legendre(k: int, x: Any) -> tuple[Any, Any]:
    return x * ((2 * k - 1) / k), (k - 1) / k


# name: (of degree one, the recurrence, what is put in for x).
POLYNOMIALS: dict[str, tuple[Callable[[Any], Any], Step]] = {
    "chebyshev_polynomial_t": (lambda x: x, _chebyshev),
    "chebyshev_polynomial_u": (lambda x: x * 2, _chebyshev),
    "chebyshev_polynomial_v": (lambda x: x * 2 - 1, _chebyshev),
    "chebyshev_polynomial_w": (lambda x: x * 2 + 1, _chebyshev),
    "hermite_polynomial_h": (lambda x: x * 2, _hermite),
    "hermite_polynomial_he": (lambda x: x, _probabilists),
    "laguerre_polynomial_l": (lambda x: -x + 1, _laguerre),
    "legendre_polynomial_p": (lambda x: x, _legendre),
}


_HIGHEST = 1024  # degree


def _degrees(n: Any) -> int:
    """The highest degree asked for, of those below a thousand."""
    whole = np.trunc(np.nan_to_num(np.asarray(n, np.float64), nan=0.0, posinf=0, neginf=0))
    return int(min(whole.max(), _HIGHEST)) if whole.size else 0


def _below_highest(n: Array) -> bool:
    return bool(np.vdot(n, n) <= _HIGHEST or n.max() <= _HIGHEST)


@cache
def _by_scipy(name: str, itemsize: int) -> Callable[[Array, Array], Array] | None:
    """The polynomial of whole degrees and finite places, by scipy's recurrences; None of Hermite's
    in float64: scipy takes them from the probabilists' ones, with their rounding."""
    second = scipy_special("eval_chebyu")
    functions: dict[str, Callable[[Array, Array], Array]] = {
        "chebyshev_polynomial_t": scipy_special("eval_chebyt"),
        "chebyshev_polynomial_u": second,
        "chebyshev_polynomial_v": lambda n, x: second(n, x) - second(n - 1, x),
        "chebyshev_polynomial_w": lambda n, x: second(n, x) + second(n - 1, x),
        "hermite_polynomial_he": scipy_special("eval_hermitenorm"),
        "laguerre_polynomial_l": scipy_special("eval_laguerre"),
        "legendre_polynomial_p": scipy_special("eval_legendre"),
    }
    if itemsize < 8:
        functions["hermite_polynomial_h"] = scipy_special("eval_hermite")
    return functions.get(name.removeprefix("shifted_"))


def _on_cpu(
    name: str, first: Callable[[Any], Any], step: Step, shifted: bool
) -> Callable[..., Array]:
    def run(x: Array, n: Array) -> Array:
        kind = np.result_type(x, n)
        x = x.astype(np.float64)
        x = x * 2 - 1 if shifted else x
        quick = _by_scipy(name, kind.itemsize)
        # A product with itself is a quicker look at all elements than a sum or a maximum.
        if quick and x.size and n.size and isfinite(np.vdot(x, x)) and _below_highest(n):
            degrees = np.maximum(n, 0).astype(np.int64)
            return (quick(degrees, x) * (n > -1)).astype(kind)  # 0 of negative degrees
        x, n = np.broadcast_arrays(x, np.trunc(n))
        before, now = np.ones_like(x), first(x)
        result = np.where(n == 0, before, np.where(n == 1, now, 0.0))
        for k in range(2, _degrees(n) + 1):
            a, b = step(k, x)
            before, now = now, a * now - b * before
            result = np.where(n == k, now, result)
        return result.astype(kind)

    return run


def _elsewhere(first: Callable[[Any], Any], step: Step, shifted: bool) -> Callable[..., Tensor]:
    def run(x: Any, n: Any) -> Tensor:
        like = x if isinstance(x, Tensor) else n
        x, n = (
            t if isinstance(t, Tensor) else aten.full((), t, dtype=like.dtype, device=like.device)
            for t in (x, n)
        )
        n = aten.trunc(n)
        zero = aten.zeros_like(x + n)
        zero = zero if zero.is_floating_point() else aten.to(zero, _default())
        x = aten.to(x, zero.dtype) + zero
        x = x * 2 - 1 if shifted else x
        before, now = aten.ones_like(x), first(x)
        result = aten.where(n == 0, before, aten.where(n == 1, now, aten.zeros_like(x)))
        highest = _degrees(aten.max(n).item()) if n.numel() else 0
        for k in range(2, highest + 1):
            a, b = step(k, x)
            before, now = now, a * now - b * before
            result = aten.where(n == k, now, result)
        return result

    return run


def _default() -> Any:
    from ...._tensor import dtype as dt

    return dt.get_default_dtype()


def _row(name: str, first: Callable[[Any], Any], step: Step, shifted: bool) -> None:
    op(
        f"special_{name}(Tensor|Scalar x, Tensor|Scalar n) -> Tensor",
        infer=pointwise("float"),
        cpu=_on_cpu(name, first, step, shifted),
        lower=in_float32(_elsewhere(first, step, shifted)),
        grad={},
        unsupported={"half complex": f"{name}_cpu"},
        samples=calls(
            (Arg((3, 4), low=0, high=1), Arg((3, 4), low=0, high=5)),
            (Arg((3, 4), "float64", -1, 1), Arg((3, 4), "float64", -3, 9)),
        ),
    )


for _name, (_first, _step) in POLYNOMIALS.items():
    _row(_name, _first, _step, False)
    if _name.startswith("chebyshev"):
        _row(f"shifted_{_name}", _first, _step, True)
