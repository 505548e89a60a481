"""Owns the change of memory format of convolutions' weights alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from ..modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module

if TYPE_CHECKING:
    from ..._functional.queries import memory_format as MemoryFormat

M = TypeVar("M", bound=Module)


def convert_conv2d_weight_memory_format(module: M, memory_format: MemoryFormat) -> M:
    """Lay out the weight of every Conv2d and ConvTranspose2d in a module; gives the module."""
    return _convert(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: M, memory_format: MemoryFormat) -> M:
    """Lay out the weight of every Conv3d and ConvTranspose3d in a module; gives the module."""
    return _convert(module, (Conv3d, ConvTranspose3d), memory_format)


def _convert(module: M, kinds: tuple[type[Module], ...], memory_format: MemoryFormat) -> M:
    for part in module.modules():
        if isinstance(part, kinds):
            weight = part.weight
            weight.data = weight.detach().to(memory_format=memory_format)
    return module
