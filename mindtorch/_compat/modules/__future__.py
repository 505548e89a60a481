"""torch.__future__: how modules take converted parameters; they keep theirs, and get new data."""

from __future__ import annotations

_WHY = "mindtorch's modules keep their parameters and give them new data"


def _refuse(name: str, value: bool) -> None:
    if value:
        raise NotImplementedError(f"torch.__future__.{name}: {_WHY}")


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether conversion makes new Parameters: False; NotImplementedError for True."""
    _refuse("set_overwrite_module_params_on_conversion", value)


def get_overwrite_module_params_on_conversion() -> bool:
    """False."""
    return False


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether conversion swaps tensors: False; NotImplementedError for True."""
    _refuse("set_swap_module_params_on_conversion", value)


def get_swap_module_params_on_conversion() -> bool:
    """False."""
    return False
