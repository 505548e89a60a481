"""torch.ao.nn.quantized.dynamic.modules."""

from mindtorch._compat.refusals import refusals

from .linear import Linear
from .rnn import GRU, LSTM, GRUCell, LSTMCell, RNNCell

__all__ = ["GRU", "LSTM", "GRUCell", "LSTMCell", "Linear", "RNNCell"]

ABSENT = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]
__getattr__ = refusals("torch.ao.nn.quantized.dynamic.modules", "mindtorch has dynamically"
                       " quantised Linear, LSTM and GRU, not this", ABSENT)  # fmt: skip
