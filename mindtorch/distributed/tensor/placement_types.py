"""Owns how a tensor lies along one dimension of a mesh: in parts, in copies, or in summands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """How a tensor lies along one dimension of a mesh."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether each process has a part, along `dim` where one is named."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether each process has a copy."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether each process has a summand, or one of another reduction."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Replicate(Placement):
    """A copy in each process."""

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True)
class Shard(Placement):
    """A part in each process, along `dim`."""

    dim: int

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True)
class _StridedShard(Shard):
    """A part of each of `split_factor` pieces, which no operator here makes."""

    split_factor: int = 1

    def __repr__(self) -> str:
        return f"_StridedShard(dim={self.dim}, sf={self.split_factor})"


@dataclass(frozen=True)
class Partial(Placement):
    """A summand in each process, or what `reduce_op` (avg, product, max, min) makes one of."""

    reduce_op: str = "sum"

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


@dataclass(frozen=True)
class _NormPartial(Partial):
    """A norm of each process's part."""

    norm_type: Any = 2

    def __repr__(self) -> str:
        return f"_NormPartial({self.norm_type})"

    def __str__(self) -> str:
        return f"_NormP({self.norm_type})"
