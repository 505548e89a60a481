"""torch.utils.data._utils: what libraries take from there."""

from . import collate, worker

__all__ = ["collate", "worker"]
