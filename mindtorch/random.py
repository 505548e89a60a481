"""torch.random: seeds and states of the default generators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ._random.generator import (
    Generator,
    default_generator as _default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from ._tensor.device import device

__all__ = [
    "Generator",
    "default_generator",  # noqa: F822 - by __getattr__
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
    "thread_safe_generator",
]


def thread_safe_generator() -> Generator | None:
    """None, the default generator: a DataLoader's workers are processes here."""
    return None


def __getattr__(name: str) -> Generator:
    """`default_generator`: cpu's, made when it is first asked for."""
    if name == "default_generator":
        return _default_generator()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@contextmanager
def fork_rng(
    devices: Iterable[Any] | None = None, enabled: bool = True, _caller: str = "fork_rng",
    _devices_kw: str = "devices", device_type: str | None = None,
) -> Iterator[None]:  # fmt: skip
    """Put the default generators (cpu's and those of `devices`) back as they were, at the end."""
    if not enabled:
        yield
        return
    device_type = device(device_type or "npu").type
    generators = [_default_generator()]
    generators += [_default_generator(f"{device_type}:{d}" if isinstance(d, int) else d)
             for d in devices or ()]  # fmt: skip
    states = [g.get_state() for g in generators]
    try:
        yield
    finally:
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)
