"""Owns Generator: where random numbers come from, on the host and on devices.

On cpu it is MT19937, and `_draw` turns its words into numbers as torch's cpu kernels do, so that a
seed gives torch's values. On a device it is a Philox seed and an offset that each call advances.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from typing import Any, Final, NoReturn
from weakref import WeakSet

import numpy as np

from .._autograd.grad_mode import LOCAL
from .._compat.class_names import CClass
from .._tensor.device import STANDING_IN, DeviceLike, device as Device, resolve, without_cuda
from .._tensor.locks import Lock
from .._tensor.recording import unrepeatable
from .._tensor.tensor import Tensor
from .._tensor.types import Array

DEFAULT_SEED = 67280421310721
_WORDS = 624
# torch's state of a cpu generator (ATen/CPUGeneratorImpl.cpp): the engine, then normal draws that
# wait. `left` words are left of the block, `next` is the place of the one that comes next.
_STATE = np.dtype([
    ("seed", "u8"), ("left", "i4"), ("seeded", "i4"), ("next", "u8"), ("words", "u8", _WORDS),
    ("unused", "f8"), ("normal", "f8"), ("unused2", "f8"), ("has_normal", "i4"), ("gap", "i4"),
    ("single", "f4"), ("has_single", "?"), ("end", "V3"),
])  # fmt: skip
# The state of a Philox generator of a device.
_SEED = np.dtype([("seed", "u8"), ("offset", "u8")])


def _refuse_in_vmap() -> None:
    unrepeatable()
    if LOCAL.randomness == "error":
        raise RuntimeError(
            "vmap: called random operation while in randomness error mode. Please either use the"
            " 'same' or 'different' randomness flags on vmap or perform the randomness operation"
            " out of vmap"
        )
    if LOCAL.apart:
        from ..func._batched import Unbatched

        raise Unbatched("each element of a batch draws its own numbers")


def refuse_batches(*values: object) -> None:
    """RuntimeError in torch's words where vmap forbids draws whose parameters have a batch."""
    if LOCAL.levels and any(hasattr(type(v), "_each_new") for v in values):
        _refuse_in_vmap()
        if LOCAL.randomness == "same":
            raise RuntimeError(
                "Vmap does not currently support same randomness with a batched tensor input."
                " Please file an issue with functorch"
            )


def _first_words(seed: int) -> Array:
    """The words of MT19937 before any was drawn."""
    state: Any = np.random.RandomState(seed & 0xFFFFFFFF)._bit_generator.state
    return state["state"]["key"]


def _is_state(state: Any) -> bool:
    """Whether `left` and `next` are those of one place among the words."""
    left, place = int(state["left"]), int(state["next"])
    if left == 1:
        return place in (0, _WORDS)
    return 0 < place < _WORDS and left + place == _WORDS + 1


class Generator(metaclass=CClass, module="torch._C"):
    """A source of random numbers on one device (torch.Generator)."""

    __module__ = "torch._C"

    def __init__(self, device: DeviceLike = "cpu"):
        self._device: Device = Device(device)
        if self.device.type in STANDING_IN:
            self._device = resolve(self.device)
        if self.device.type == "cuda":
            raise without_cuda("get CUDA generator")
        if self.device.type == "meta":
            raise RuntimeError("META device type not an accelerator.")
        self._lock = Lock()
        self.manual_seed(DEFAULT_SEED)
        _alive.add(self)

    @property
    def device(self) -> Device:
        """Where its numbers are drawn."""
        return self._device

    def manual_seed(self, seed: int) -> Generator:
        """Start over from `seed`; a negative one counts back from 2**64."""
        if not hasattr(seed, "__index__"):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        if not -(1 << 63) <= seed < 1 << 64:
            raise ValueError("Overflow when unpacking long long")
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

    def get_offset(self) -> int:
        """RuntimeError on cpu; on a device, how many draws of its stream were taken."""
        if self.device.type == "cpu":
            raise RuntimeError("CPU Generator does not use offset")
        return self._offset

    def set_offset(self, offset: int) -> Generator:
        """RuntimeError on cpu; on a device, go on from a place of its stream."""
        self.get_offset()
        self._offset = offset
        return self

    def graphsafe_get_state(self) -> Generator:
        """NotImplementedError: states aren't shared with graphs."""
        raise NotImplementedError("graphsafe_get_state is not supported in this Generator")

    def graphsafe_set_state(self, state: Generator) -> NoReturn:
        """NotImplementedError: states aren't shared with graphs."""
        raise NotImplementedError("graphsafe_set_state is not supported in this Generator")

    def words(self, n: int) -> Array:
        """The next `n` 32-bit words, as uint64."""
        _refuse_in_vmap()
        with self._lock:
            return self._bits.random_raw(n)

    def step(self, function: Callable[..., Any], *args: Any) -> Any:
        """`function` of numpy's bit generator, held by this thread: it takes words one by one."""
        _refuse_in_vmap()
        with self._lock:
            return function(self._bits.capsule, *args)

    def advance(self, numel: int) -> tuple[int, int]:
        """(seed, offset) for drawing `numel` numbers on a device; four come from one offset."""
        _refuse_in_vmap()
        with self._lock:
            offset = self._offset
            self._offset += -(-numel // 4) or 1
            return self._seed, offset

    def get_state(self) -> Tensor:
        """The state as a uint8 tensor, laid out as torch's: `_STATE` on cpu, else `_SEED`."""
        from .._functional.creation import from_array

        if self.device.type != "cpu":
            return from_array(np.array((self._seed, self._offset), _SEED).reshape(1).view(np.uint8))
        words = self._bits.state["state"]
        position = int(words["pos"])
        state = np.zeros(1, _STATE)
        used = position < _WORDS or not np.array_equal(words["key"], _first_words(self._seed))
        state["seed"], state["seeded"] = self._seed, 1
        state["left"], state["next"] = _WORDS + 1 - position, position if used else 0
        state["words"] = words["key"]
        if self._spare is not None:
            state["normal"], state["has_normal"] = self._spare, 1
        return from_array(state.view(np.uint8))

    def set_state(self, new_state: Tensor) -> Generator:
        """Go back to a state of `get_state`, or of torch's; RuntimeError for another size."""
        if not hasattr(new_state, "_geom"):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
        if str(new_state.dtype) != "torch.uint8" or new_state.device.type != "cpu":
            raise TypeError("RNG state must be a torch.ByteTensor")
        raw = np.ascontiguousarray(new_state.numpy()).reshape(-1)
        layout = _STATE if self.device.type == "cpu" else _SEED
        if raw.nbytes != layout.itemsize:
            raise RuntimeError(
                f"Expected a {self.device.type.upper()}GeneratorImplState of size"
                f" {layout.itemsize} but found the input RNG state size to be {raw.nbytes}"
            )
        state = raw.view(layout)[0]
        if layout is _STATE and not _is_state(state):
            raise RuntimeError("Invalid mt19937 state")
        self.manual_seed(int(state["seed"]))
        if layout is _SEED:
            self._offset = int(state["offset"])
            return self
        self._spare = float(state["normal"]) if state["has_normal"] else None
        position = _WORDS if state["left"] == 1 else int(state["next"])
        self._bits.state = {
            "bit_generator": "MT19937",
            "state": {"key": state["words"].astype(np.uint32), "pos": position},
        }
        return self

    def clone_state(self) -> Generator:
        """Another generator in the same state."""
        return Generator(self.device).set_state(self.get_state())

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy is another generator in the same state."""
        offset = None if self.device.type == "cpu" else self.get_offset()
        return _generator_on, (self.device,), (self.initial_seed(), offset, self.get_state())

    def __setstate__(self, state: tuple[int, int | None, Tensor]) -> None:
        self.set_state(state[2])

    def __repr__(self) -> str:
        return f"<torch._C.Generator object at {id(self):#x}>"


def _generator_on(device: Device) -> Generator:
    """What a pickle names: the class goes by torch's name, which need not be to be had there."""
    return Generator(device)


_alive: Final[WeakSet[Generator]] = WeakSet()


def _renew_all() -> None:
    for generator in list(_alive):
        generator.renew()


os.register_at_fork(after_in_child=_renew_all)


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
                if _seed is None:  # as torch's: each process draws other numbers
                    generator.seed()
                else:
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
    value = secrets.randbits(63)
    manual_seed(value)
    return value


def initial_seed() -> int:
    """The cpu generator's seed."""
    return default_generator("cpu").initial_seed()


def get_rng_state() -> Tensor:
    """The cpu generator's state."""
    return default_generator("cpu").get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Put the cpu generator into a state."""
    default_generator("cpu").set_state(new_state)
