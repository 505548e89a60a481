"""torch.random: seeds and states of the default generators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ._random.generator import (
    Generator,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

__all__ = [
    "Generator",
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]


@contextmanager
def fork_rng(
    devices: Iterable[Any] | None = None, enabled: bool = True, device_type: str = "npu"
) -> Iterator[None]:
    """Put the default generators (cpu's and those of `devices`) back as they were, at the end."""
    if not enabled:
        yield
        return
    generators = [default_generator("cpu")]
    generators += [default_generator(f"{device_type}:{d}" if isinstance(d, int) else d)
             for d in devices or ()]  # fmt: skip
    states = [g.get_state() for g in generators]
    try:
        yield
    finally:
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)
