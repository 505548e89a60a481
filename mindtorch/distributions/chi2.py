"""torch.distributions.chi2: sums of squared normal numbers."""

from __future__ import annotations

from .._tensor.tensor import Tensor
from . import constraints
from .distribution import Parameter
from .gamma import Gamma


class Chi2(Gamma):
    """Chi-squared with `df` degrees of freedom: gamma of shape df / 2 and rate 1/2."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Parameter, validate_args: bool | None = None):
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def _expanded(self) -> tuple[str, ...]:
        return ("concentration", "rate")

    def _events_of(self, name: str) -> int:
        return 0

    @property
    def df(self) -> Tensor:
        return self.concentration * 2


__all__ = ["Chi2"]
