"""torch.utils.data._utils: what libraries take from there."""

from . import collate, pin_memory, worker

__all__ = ["collate", "pin_memory", "worker"]
