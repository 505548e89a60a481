"""torch.utils.mobile_optimizer's names: rewriting graphs for phones is refused."""

from .._compat.refusals import refusals

_NAMES = (
    "LintCode", "MobileOptimizerType", "generate_mobile_module_lints", "optimize_for_mobile",
)  # fmt: skip
_WHY = "mindtorch runs eagerly and rewrites no graphs"

__all__ = list(_NAMES)
__getattr__ = refusals("torch.utils.mobile_optimizer", _WHY, _NAMES)
