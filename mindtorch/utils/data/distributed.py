"""Owns DistributedSampler: each rank's share of a dataset."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sized

import mindtorch

from .sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """Every num_replicas-th index from rank on, of an order that
    all ranks shuffle alike by epoch."""

    num_samples: int
    epoch: int

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        group = mindtorch.distributed
        if num_replicas is None:
            num_replicas = group.get_world_size()
        if rank is None:
            rank = group.get_rank()
        if rank >= num_replicas or rank < 0:
            raise ValueError(
                f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]"
            )
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        size = len(dataset)
        if drop_last and size % num_replicas != 0:
            self.num_samples = math.ceil((size - num_replicas) / num_replicas)
        else:
            self.num_samples = math.ceil(size / num_replicas)
        self.total_size: int = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[int]:
        size = len(self.dataset)
        if self.shuffle:
            generator = mindtorch.Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = mindtorch.randperm(size, generator=generator).tolist()
        else:
            indices = list(range(size))
        if not self.drop_last and indices:
            repeats = math.ceil(self.total_size / len(indices))
            indices = indices * repeats
        return iter(indices[: self.total_size][self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Chooses the shuffle of the next pass; call it before each epoch."""
        self.epoch = epoch
