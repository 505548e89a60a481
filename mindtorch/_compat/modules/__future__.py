"""torch.__future__: how modules take converted parameters."""

from __future__ import annotations

from mindtorch.nn.modules._conversion import ON_CONVERSION


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether `module.to` and its like make new Parameters instead of giving them new data."""
    ON_CONVERSION["overwrite"] = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether conversion makes new Parameters."""
    return ON_CONVERSION["overwrite"]


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether conversion and `load_state_dict` swap a parameter with its converted one."""
    ON_CONVERSION["swap"] = value


def get_swap_module_params_on_conversion() -> bool:
    """Whether conversion and `load_state_dict` swap tensors."""
    return ON_CONVERSION["swap"]
