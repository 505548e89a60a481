"""Owns torch's warning of an operator that takes the elements of a batch one by one under vmap."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._autograd.grad_mode import LOCAL
from .._compat.warn_once import warn

# Operators without a batching rule in torch: rows and composites of ours by their base names.
ROWS = frozenset((
    "bincount", "histogram", "index_reduce", "isclose", "masked_scatter", "soft_margin_loss",
    "special_airy_ai", "special_chebyshev_polynomial_t", "special_chebyshev_polynomial_u",
    "special_chebyshev_polynomial_v", "special_chebyshev_polynomial_w",
    "special_hermite_polynomial_h", "special_hermite_polynomial_he",
    "special_laguerre_polynomial_l", "special_legendre_polynomial_p", "special_log_ndtr",
    "special_shifted_chebyshev_polynomial_t", "special_shifted_chebyshev_polynomial_u",
    "special_shifted_chebyshev_polynomial_v", "special_shifted_chebyshev_polynomial_w",
))  # fmt: skip
COMPOSITES = frozenset((
    "argwhere", "bilinear", "ctc_loss", "embedding_bag", "fft_ihfft2", "fft_ihfftn",
    "fractional_max_pool2d", "fractional_max_pool3d", "histc", "istft", "kl_div",
    "linalg_ldl_solve", "linalg_lu", "linalg_tensorsolve", "lu_solve", "margin_ranking_loss",
    "max_unpool2d", "max_unpool3d", "multi_margin_loss", "multilabel_margin_loss", "nanquantile",
    "ormqr", "pdist", "put", "quantile", "renorm", "stft", "take", "triplet_margin_loss",
))  # fmt: skip


_QUANTILES = ("quantile", "nanquantile")


def warn_of_loop(name: str) -> None:
    """UserWarning in torch's words for an operator of this name."""
    warn(
        "There is a performance drop because we have not yet implemented the batching rule for"
        f" aten::{name}. Please file us an issue on GitHub so that we can prioritize its"
        " implementation. ",
    )


def warning(name: str, body: Callable[..., Any]) -> Callable[..., Any]:
    """A composite's body, which warns where it is given tensors of a batch."""

    @functools.wraps(body)
    def warned(*args: Any, **kwargs: Any) -> Any:
        if LOCAL.levels and any(hasattr(type(v), "_each_new") for v in (*args, *kwargs.values())):
            by_number = name in _QUANTILES and isinstance((*args, kwargs.get("q"))[1], float)
            warn_of_loop(f"{name}.scalar" if by_number else name)
        return body(*args, **kwargs)

    return warned
