"""torch.utils.data._utils.collate: making batches, under the names that libraries extend."""

from .._collate import collate, default_collate, default_collate_fn_map, default_convert

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]
