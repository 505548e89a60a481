"""torch.distributions.wishart: Wishart by name; making one is refused."""

from __future__ import annotations

from typing import Any


class Wishart:
    """Refused: draws of the gamma distribution, which it needs, are not offered."""

    def __init__(self, *_: Any, **__: Any):
        raise NotImplementedError("torch.distributions.Wishart: mindtorch draws no gamma variates")
