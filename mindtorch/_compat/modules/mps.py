"""Owns torch.mps' names for code that asks whether MPS is there: it is not."""

from .cuda import device_count, is_available, manual_seed

__all__ = ["current_allocated_memory", "device_count", "driver_allocated_memory", "empty_cache",
           "is_available", "manual_seed", "synchronize"]  # fmt: skip


def _refuse(name: str) -> None:
    raise RuntimeError(f"torch.mps.{name}: mindtorch has no MPS device")


def synchronize() -> None:
    """Refused: there is no MPS device."""
    _refuse("synchronize")


def empty_cache() -> None:
    """Refused: there is no MPS device."""
    _refuse("empty_cache")


def current_allocated_memory() -> int:
    """0."""
    return 0


driver_allocated_memory = current_allocated_memory


def get_rng_state() -> None:
    """Refused: there is no MPS device."""
    _refuse("get_rng_state")


def set_rng_state(new_state: object) -> None:
    """Refused: there is no MPS device."""
    _refuse("set_rng_state")


def seed() -> None:
    """Refused: there is no MPS device."""
    _refuse("seed")


def recommended_max_memory() -> int:
    """0."""
    return 0


def set_per_process_memory_fraction(fraction: float) -> None:
    """Refused: there is no MPS device."""
    _refuse("set_per_process_memory_fraction")


def compile_shader(source: str) -> None:
    """Refused: there is no MPS device."""
    _refuse("compile_shader")
