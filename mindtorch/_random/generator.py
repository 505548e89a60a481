"""Owns Generator: where random numbers come from, on the host and on devices.

On cpu it is MT19937, and `_draw` turns its words into numbers as torch's cpu kernels do, so that a
seed gives torch's values. On a device it is a Philox seed and an offset that each call advances.
"""

from __future__ import annotations

import os
import secrets
from typing import Any, Final
from weakref import WeakSet

import numpy as np

from .._autograd.grad_mode import LOCAL
from .._tensor.device import DeviceLike, resolve
from .._tensor.device import device as Device
from .._tensor.locks import Lock
from .._tensor.tensor import Tensor
from .._tensor.types import Array

DEFAULT_SEED = 67280421310721


def _refuse_in_vmap() -> None:
    if LOCAL.randomness == "error":
        raise RuntimeError(
            "vmap: called random operation while in randomness error mode. Please either use the"
            " 'same' or 'different' randomness flags on vmap or perform the randomness operation"
            " out of vmap"
        )


class Generator:
    """A source of random numbers on one device (torch.Generator)."""

    def __init__(self, device: DeviceLike = "cpu"):
        self.device = Device(device)
        self._lock = Lock()
        self.manual_seed(DEFAULT_SEED)
        _alive.add(self)

    def manual_seed(self, seed: int) -> Generator:
        """Start over from `seed`; a negative one counts back from 2**64."""
        if not hasattr(seed, "__index__"):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        if not -(1 << 63) <= seed < 1 << 64:
            raise RuntimeError(
                f"Overflow when unpacking long: the seed must be in [-2**63, 2**64), got {seed}"
            )
        self._seed = seed % (1 << 64)
        self._offset = 0
        self._spare: float | None = None
        # RandomState seeds MT19937 by Knuth's recurrence, as torch does; MT19937(seed) does not.
        self._bits: Any = np.random.RandomState(self._seed & 0xFFFFFFFF)._bit_generator
        return self

    def renew(self) -> None:
        """Draw on with a bit generator of its own: numpy's has a lock, which a thread that a fork
        did not take along may have held."""
        bits: Any = np.random.RandomState(0)._bit_generator
        bits.state = self._bits.state
        self._bits = bits

    def seed(self) -> int:
        """Start over from a seed taken from the system; returns it."""
        seed = secrets.randbits(63)
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """The seed in use."""
        return self._seed

    def words(self, n: int) -> Array:
        """The next `n` 32-bit words, as uint64."""
        _refuse_in_vmap()
        with self._lock:
            return self._bits.random_raw(n)

    def advance(self, numel: int) -> tuple[int, int]:
        """(seed, offset) for drawing `numel` numbers on a device; four come from one offset."""
        _refuse_in_vmap()
        with self._lock:
            offset = self._offset
            self._offset += -(-numel // 4) or 1
            return self._seed, offset

    def get_state(self) -> Tensor:
        """The state as a uint8 tensor."""
        from .._functional.creation import from_array

        state = self._bits.state["state"]
        head = np.array([self._seed, self._offset, int(state["pos"])], np.uint64)
        spare = np.array([np.nan if self._spare is None else self._spare], np.float64)
        parts = (head.view(np.uint8), spare.view(np.uint8),
                 np.asarray(state["key"], np.uint32).view(np.uint8))  # fmt: skip
        return from_array(np.concatenate(parts))

    def set_state(self, state: Tensor) -> Generator:
        """Go back to a state of `get_state`; RuntimeError for one of another size."""
        if not hasattr(state, "_geom"):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(state).__name__}")
        if str(state.dtype) != "torch.uint8" or state.device.type != "cpu":
            raise TypeError("RNG state must be a torch.ByteTensor")
        raw = np.ascontiguousarray(state.numpy())
        if raw.nbytes != 32 + 4 * 624:
            raise RuntimeError(
                f"set_state: the state has {raw.nbytes} bytes, expected {32 + 4 * 624} as"
                " get_state gives"
            )
        seed, offset, position = (int(v) for v in raw[:24].view(np.uint64))
        if position > 624:  # words; numpy would read beyond them
            raise RuntimeError(
                f"set_state: position {position} of 624 words: no state of get_state"
            )
        self.manual_seed(seed)
        self._offset = offset
        spare = float(raw[24:32].view(np.float64)[0])
        self._spare = None if np.isnan(spare) else spare
        self._bits.state = {
            "bit_generator": "MT19937",
            "state": {"key": raw[32:].view(np.uint32).copy(), "pos": position},
        }
        return self

    def clone_state(self) -> Generator:
        """Another generator in the same state."""
        return Generator(self.device).set_state(self.get_state())

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy is another generator in the same state."""
        return _restored, (str(self.device), self.get_state())

    def __repr__(self) -> str:
        return f"<torch.Generator device='{self.device}'>"


_alive: Final[WeakSet[Generator]] = WeakSet()


def _renew_all() -> None:
    for generator in list(_alive):
        generator.renew()


os.register_at_fork(after_in_child=_renew_all)


def _restored(device: str, state: Tensor) -> Generator:
    return Generator(device).set_state(state)


_defaults: dict[Device, Generator] = {}
_lock = Lock()
_seed: int | None = None


def default_generator(device: DeviceLike = "cpu") -> Generator:
    """The generator that calls without `generator=` on a device use."""
    where = resolve(device)
    generator = _defaults.get(where)
    if generator is None:
        with _lock:
            generator = _defaults.get(where)
            if generator is None:
                generator = Generator(where)
                if _seed is not None:
                    generator.manual_seed(_seed)
                _defaults[where] = generator
    return generator


def manual_seed(seed: int) -> Generator:
    """Seed every device's default generator; those made later start from it too."""
    global _seed
    seed = int(seed)
    host = default_generator("cpu").manual_seed(seed)
    _seed = seed
    for generator in _defaults.values():
        generator.manual_seed(seed)
    return host


def seed() -> int:
    """Seed every default generator from the system; returns the seed."""
    drawn = secrets.randbits(63)
    manual_seed(drawn)
    return drawn


def initial_seed() -> int:
    """The cpu generator's seed."""
    return default_generator("cpu").initial_seed()


def get_rng_state() -> Tensor:
    """The cpu generator's state."""
    return default_generator("cpu").get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Put the cpu generator into a state."""
    default_generator("cpu").set_state(new_state)


def reset_after_fork(seed_value: int) -> None:
    """Seeds of a data-loading worker: its own, made from the parent's."""
    manual_seed(seed_value)
