"""Owns the names of torch.special: rows called special_name, and second names of other rows."""

from __future__ import annotations

from typing import Any

from ._functional.publish import module, spelled
from ._tensor.loading import load

load()

# name here: the row that computes it (torch.special's document: "Alias for torch.…").
SPELLINGS = {
    "digamma": "digamma", "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "exp2": "exp2",
    "expit": "sigmoid", "expm1": "expm1", "gammainc": "igamma", "gammaincc": "igammac",
    "gammaln": "lgamma", "log1p": "log1p", "log_softmax": "log_softmax", "logit": "logit",
    "logsumexp": "logsumexp", "multigammaln": "mvlgamma", "polygamma": "polygamma",
    "psi": "digamma", "round": "round", "sinc": "sinc", "softmax": "softmax", "xlogy": "xlogy",
}  # fmt: skip
_names, _find = module("special")
__all__ = sorted({*_names, *SPELLINGS})


def __getattr__(name: str) -> Any:
    built = spelled(SPELLINGS[name], f"special_{name}") if name in SPELLINGS else _find(name)
    globals()[name] = built
    return built


def __dir__() -> list[str]:
    return __all__
