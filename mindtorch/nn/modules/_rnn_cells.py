"""Owns the single-step cells RNNCell, LSTMCell and GRUCell."""

from __future__ import annotations

import math
from typing import Any

import mindtorch

from ..._tensor.device import DeviceLike
from ..._tensor.dtype import dtype as Dtype
from ..._tensor.tensor import Tensor
from .. import functional as F, init
from ..parameter import Parameter
from ._recurrence import CELLS, State
from .module import Module


class RNNCellBase(Module):
    """Weights of one step: `[gates · hidden, input]` and `[gates · hidden, hidden]`."""

    __module__ = "mindtorch.nn.modules.rnn"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: DeviceLike | None = None,
        dtype: Dtype | None = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        gates = num_chunks * hidden_size
        shapes: dict[str, tuple[int, ...]] = {
            "weight_ih": (gates, input_size),
            "weight_hh": (gates, hidden_size),
            "bias_ih": (gates,),
            "bias_hh": (gates,),
        }
        for name, shape in shapes.items():
            on = bias or name.startswith("weight")
            empty = mindtorch.empty(shape, device=device, dtype=dtype) if on else None
            self.register_parameter(name, None if empty is None else Parameter(empty))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws every weight from U(-1/sqrt(hidden), 1/sqrt(hidden))."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        nonlinearity = self.__dict__.get("nonlinearity", "tanh")
        return text if nonlinearity == "tanh" else f"{text}, nonlinearity={nonlinearity}"

    def _step(self, mode: str, input: Tensor, state: State | None) -> State:
        if input.dim() not in (1, 2):
            raise ValueError(
                f"{self._get_name()}: Expected input to be 1D or 2D, got {input.dim()}D instead"
            )
        for i, s in enumerate(state or ()):
            if s.dim() not in (1, 2):
                name = f"hx[{i}]" if mode == "LSTM" else "hidden"
                raise ValueError(
                    f"{self._get_name()}: Expected {name} to be 1D or 2D, got {s.dim()}D instead"
                )
        batched = input.dim() == 2
        x = input if batched else input.unsqueeze(0)
        if state is None:
            zeros = mindtorch.zeros((x.size(0), self.hidden_size), dtype=x.dtype, device=x.device)
            state = (zeros, zeros) if mode == "LSTM" else (zeros,)
        elif not batched:
            state = tuple(s.unsqueeze(0) for s in state)
        self._check_sizes(x, state)
        projected = F.linear(x, self.weight_ih, self.bias_ih)
        new = CELLS[mode](projected, state, (self.weight_hh, self.bias_hh))
        return new if batched else tuple(s.squeeze(0) for s in new)

    def _check_sizes(self, x: Tensor, state: State) -> None:
        """RuntimeError in torch's words where input or state do not fit the weights."""
        if x.size(1) != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {x.size(1)} expected {self.input_size}"
            )
        for i, s in enumerate(state):
            if x.size(0) != s.size(0):
                raise RuntimeError(
                    f"Input batch size {x.size(0)} doesn't match hidden{i} batch size {s.size(0)}"
                )
            if s.size(1) != self.hidden_size:
                raise RuntimeError(
                    f"hidden{i} has inconsistent hidden_size: got {s.size(1)}, expected"
                    f" {self.hidden_size}"
                )


class RNNCell(RNNCellBase):
    """h' = tanh(W x + U h), or relu."""

    __module__ = "mindtorch.nn.modules.rnn"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: DeviceLike | None = None,
        dtype: Dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        mode = f"RNN_{self.nonlinearity.upper()}"
        return self._step(mode, input, None if hx is None else (hx,))[0]


class LSTMCell(RNNCellBase):
    """(h, c) → (h', c')."""

    __module__ = "mindtorch.nn.modules.rnn"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: Dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: Any = None) -> tuple[Tensor, ...]:
        if isinstance(hx, Tensor):
            raise TypeError(
                "lstm_cell(): argument 'hx' (position 2) must be tuple of Tensors, not Tensor"
            )
        state = None if hx is None else tuple(hx)
        if state is not None and len(state) != 2:
            raise RuntimeError("lstm_cell expects two hidden states")
        return self._step("LSTM", input, state)


class GRUCell(RNNCellBase):
    """h → h' through reset and update gates."""

    __module__ = "mindtorch.nn.modules.rnn"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: Dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step("GRU", input, None if hx is None else (hx,))[0]
