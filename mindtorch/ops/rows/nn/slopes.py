"""Owns the rows of activations' gradients by their input: one call each."""

from __future__ import annotations

from ...choice import choose
from ...rules import Pointwise, result_type
from ...samples import FLOATS
from ...spec import SHORT_FLOATS, Derivative, in_dtypes
from ...words import *

FLOATING = tuple(d for d in dt.ALL if d.category == dt.FLOAT)


class Slope(Pointwise):
    """Of the gradient of an activation: torch's kernels take floating-point numbers."""

    def __init__(self, kernel: str, known: tuple[Dtype, ...] = FLOATING, slope: Any = None):
        super().__init__(only=(kernel, known))
        self.slope = slope

    def __call__(self, *args: Any) -> Geometry:
        if self.slope is not None:
            self.slope(*args[2:])
        return super().__call__(*args)


def where(grad: Array, mask: Array) -> Array:
    """The gradient where the mask holds, else 0, also of what is infinite."""
    return choose(mask, grad, np.zeros((), grad.dtype))


def slope_samples(*rest: Any) -> Callable[..., Any]:
    """A gradient and an input of every floating-point dtype, with the settings of each of `rest`:
    by name where it is a dict, by position where it is a tuple."""

    def sample(d: str, settings: Any) -> Sample:
        pair = Arg((3, 4), d), Arg((3, 4), d, -4.0, 4.0)
        named = isinstance(settings, dict)
        return Sample(pair, settings) if named else Sample((*pair, *settings))

    return lambda: [sample(d, settings) for d in FLOATS for settings in (rest or ({},))]


def _row(row: str, settings: str = "", known: tuple[Dtype, ...] = FLOATING, **fields: Any) -> None:
    """A row of a gradient and an input; `fields` are those in which such rows differ."""
    op(
        f"{row}(Tensor grad_output, Tensor self{settings}) -> Tensor",
        infer=Slope(f"{row}_cpu", known),
        tolerance="composite",
        rule="activation_backward",
        surface="none",
        **fields,
    )


def slope_row(
    name: str,
    slope: Callable[[Array], Array],
    lower: Callable[[Tensor, Tensor], Tensor],
    curved: Callable[[Tensor, Tensor, Tensor], Tensor],
    known: tuple[Dtype, ...] = FLOATING,
) -> None:
    """The row of an activation's gradient by its input: `slope` in numpy, `lower` by other rows,
    `curved` its own gradient by the input."""
    row = f"{name}_backward"
    _row(
        row, "", known,
        cpu=lambda grad, x: grad * slope(x),
        aclnn=call(
            f"aclnn{name.capitalize()}Backward", "grad_output", "self", "out",
            when=in_dtypes("self", *SHORT_FLOATS),
        ),
        lower=lower,
        grad={"grad_output": lambda grad, self: getattr(aten, row)(grad, self), "self": curved},
        samples=slope_samples(),
    )  # fmt: skip


def slope(
    name: str,
    cpu: Callable[..., Array],
    lower: Callable[..., Tensor],
    aclnn: tuple[Any, ...],
    settings: dict[str, tuple[Any, ...]] | None = None,
    oracle: Callable[..., Any] = lambda f: f,
) -> Derivative:
    """An activation's gradient by its input, from the gradient, the input and its settings: a row
    (`cpu` in numpy, `aclnn` the call), and `lower`, made of other rows, where the gradient of the
    gradient may be asked for. `settings`: values for samples by name; `oracle` orders arguments."""
    row, settings = f"{name}_backward", settings or {}

    def composed(grad: Tensor, self: Tensor, *values: Any) -> Tensor:
        if grad.dtype is not self.dtype:  # where a condition chooses, nothing else promotes
            grad = aten.to(grad, result_type((grad._geom, self._geom)))
        return lower(grad, self, *values)

    _row(
        row, "".join(f", Scalar {setting}" for setting in settings),
        cpu=cpu,
        aclnn=call(*aclnn, when=in_dtypes("self", *SHORT_FLOATS)),
        lower=composed,
        grad={},
        samples=slope_samples(*zip(*settings.values(), strict=True)),
        oracle=lambda torch: oracle(getattr(torch.ops.aten, row)),
    )  # fmt: skip

    def derivative(grad: Tensor, self: Tensor, *values: Any) -> Any:
        recorded = aten._recorded(grad, self)
        return (lower if recorded else getattr(aten, row))(grad, self, *values)

    return Derivative(derivative, ("grad", "self", *settings))
