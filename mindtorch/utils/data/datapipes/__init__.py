"""Owns torch.utils.data.datapipes: datasets put together of steps, read by a DataLoader."""

from . import iter as iter, map as map
