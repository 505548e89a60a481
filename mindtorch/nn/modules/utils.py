"""Names of torch.nn.modules.utils: sizes expanded to tuples, and keys of states without prefix."""

from typing import Any

from ...ops.sizes import (
    _list_with_default,
    _ntuple,
    _pair,
    _quadruple,
    _reverse_repeat_tuple,
    _single,
    _triple,
)

__all__ = [
    "_list_with_default", "_ntuple", "_pair", "_quadruple", "_reverse_repeat_tuple", "_single",
    "_triple", "consume_prefix_in_state_dict_if_present",
]  # fmt: skip


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take a prefix ("module.") off the keys of a state, and of its metadata, in place."""
    for key in [k for k in state_dict if k.startswith(prefix)]:
        state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata: dict[str, Any] = getattr(state_dict, "_metadata", None) or {}
    for key in list(metadata):
        if key and (key == prefix.replace(".", "") or key.startswith(prefix)):
            metadata[key[len(prefix) :]] = metadata.pop(key)
