"""torch.nested's names: tensors of rows of different lengths are refused."""

from mindtorch._compat.refusals import refusals

_NAMES = (
    "as_nested_tensor", "masked_select", "narrow", "nested_tensor",
    "nested_tensor_from_jagged", "to_padded_tensor",
)  # fmt: skip
_WHY = "mindtorch has no nested tensors; pad them with torch.nn.utils.rnn.pad_sequence"

__path__: list[str] = []  # what is below is in absent_modules.txt
__all__ = list(_NAMES)
__getattr__ = refusals("torch.nested", _WHY, _NAMES)
