"""torch.quasirandom's names: Sobol sequences are refused."""

from ._functional.refusals import refusals

_NAMES = ("SobolEngine",)
_WHY = "mindtorch has no direction numbers; scipy.stats.qmc.Sobol draws them as an array"

__all__ = list(_NAMES)
__getattr__ = refusals("torch.quasirandom", _WHY, _NAMES)
