"""torch.distributions.wishart: Wishart by name; making one is refused."""

from __future__ import annotations


class Wishart:
    """Refused: draws of the gamma distribution, which it needs, are not offered."""

    def __init__(self, *_: object, **__: object):
        raise NotImplementedError("torch.distributions.Wishart: mindtorch draws no gamma variates")
