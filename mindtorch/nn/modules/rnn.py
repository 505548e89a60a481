"""Owns RNN, LSTM and GRU: weights, layers and directions; cells
stand in _rnn_cells, steps in _recurrence."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

import mindtorch

from ..._autograd.grad_mode import LOCAL
from ..._compat.warn_once import warn_once
from ..._tensor.device import DeviceLike
from ..._tensor.device import device as Device
from ..._tensor.dtype import dtype as Dtype
from ..._tensor.tensor import Tensor
from .. import functional as F
from .. import init
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from ._recurrence import CELLS, State, over_packed, over_time
from ._rnn_cells import GRUCell, LSTMCell, RNNCell, RNNCellBase
from .module import Module

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """Recurrent layers of one mode over `[T, N, I]` (`[N, T, I]`
    with batch_first) or packed sequences."""

    mode: str
    bias: bool

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: DeviceLike | None = None,
        dtype: Dtype | None = None,
    ) -> None:
        super().__init__()
        _check(mode, hidden_size, num_layers, dropout, proj_size)
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout: float = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for direction in range(2 if bidirectional else 1):
                self._make_weights(layer, direction, device, dtype)
        self.reset_parameters()

    def _make_weights(
        self, layer: int, direction: int, device: Device | str | int | None, dtype: Dtype | None
    ) -> None:
        gates = _GATES[self.mode] * self.hidden_size
        real = self.proj_size or self.hidden_size
        inputs = self.input_size if layer == 0 else real * (2 if self.bidirectional else 1)
        suffix = f"l{layer}" + ("_reverse" if direction else "")
        shapes: dict[str, tuple[int, ...]] = {
            f"weight_ih_{suffix}": (gates, inputs),
            f"weight_hh_{suffix}": (gates, real),
        }
        if self.bias:
            shapes |= {f"bias_ih_{suffix}": (gates,), f"bias_hh_{suffix}": (gates,)}
        if self.proj_size:
            shapes[f"weight_hr_{suffix}"] = (self.proj_size, self.hidden_size)
        for name, shape in shapes.items():
            setattr(self, name, Parameter(mindtorch.empty(shape, device=device, dtype=dtype)))
        self._all_weights.append(list(shapes))

    @property
    def all_weights(self) -> list[list[Any]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights(self) -> list[Any]:
        return [weight for weights in self.all_weights for weight in weights]

    def flatten_parameters(self) -> None:
        """Accepted for torch's sake: weights are used where they are."""

    def reset_parameters(self) -> None:
        """Draws every weight from U(-1/sqrt(hidden), 1/sqrt(hidden))."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size:
            text += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if self.batch_first is not False:
            text += f", batch_first={self.batch_first}"
        if self.dropout != 0:
            text += f", dropout={self.dropout}"
        if self.bidirectional is not False:
            text += f", bidirectional={self.bidirectional}"
        return text

    def forward(self, input: Any, hx: Tensor | None = None) -> Any:
        """Gives (output, last state); the state is (h, c) for LSTM, h for the others."""
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        if input.dim() not in (2, 3):
            raise ValueError(
                f"{self._get_name()}: Expected input to be 2D or 3D, got {input.dim()}D"
                + " tensor" * self.mode.startswith("RNN")
                + " instead"
            )
        self._check_input(input)
        batched = input.dim() == 3
        x = input if batched else input.unsqueeze(1)
        x = x.transpose(0, 1) if batched and self.batch_first else x
        state = self._first_state(x, x.size(1), hx, batched)
        out, last = self._layers(x, None, state)
        out = out.transpose(0, 1) if batched and self.batch_first else out
        if not batched:
            out, last = out.squeeze(1), tuple(s.squeeze(1) for s in last)
        return out, self._as_state(last)

    def _forward_packed(self, packed: PackedSequence, hx: Any) -> Any:
        self._check_input(packed.data)
        sizes = [int(size) for size in packed.batch_sizes.tolist()]
        if hx is not None and packed.sorted_indices is not None:
            states = hx if isinstance(hx, tuple) else (hx,)
            states = tuple(s.index_select(1, packed.sorted_indices) for s in states)
            hx = states if isinstance(hx, tuple) else states[0]
        state = self._first_state(packed.data, sizes[0], hx, True)
        out, last = self._layers(packed.data, sizes, state)
        if packed.unsorted_indices is not None:
            last = tuple(s.index_select(1, packed.unsorted_indices) for s in last)
        sorted_out = PackedSequence(
            out, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices
        )
        return sorted_out, self._as_state(last)

    def _as_state(self, state: State) -> Tensor | tuple[Tensor, ...]:
        return state if self.mode == "LSTM" else state[0]

    def _check_input(self, input: Tensor) -> None:
        weight = self.weight_ih_l0
        if input.dtype is not weight.dtype and not LOCAL.autocast:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype})."
                f" Convert input: input.to({weight.dtype}), or convert model:"
                f" model.to({input.dtype})"
            )
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, "
                f"got {input.size(-1)}"
            )

    def _first_state(self, x: Tensor, batch: int, hx: Tensor | None, batched: bool) -> State:
        rows = self.num_layers * (2 if self.bidirectional else 1)
        widths = [self.proj_size or self.hidden_size]
        widths += [self.hidden_size] if self.mode == "LSTM" else []
        if hx is None:
            return tuple(
                mindtorch.zeros((rows, batch, width), dtype=x.dtype, device=x.device)
                for width in widths
            )
        states: State = (hx[0], hx[1]) if self.mode == "LSTM" else (hx,)
        if self.mode == "LSTM":
            _check_ranks(states, batched)
        if not batched:
            states = tuple(s.unsqueeze(1) for s in states)
        for name, s, width in zip(("hidden[0]", "hidden[1]"), states, widths, strict=False):
            label = name if self.mode == "LSTM" else "hidden"
            if tuple(s.shape) != (rows, batch, width):
                raise RuntimeError(
                    f"Expected {label} size {(rows, batch, width)}, got {list(s.shape)}"
                )
        return states

    def _warn_of_projections(self, x: Tensor) -> None:
        if self.proj_size and x.dtype is not mindtorch.float64 and x.device.type == "cpu":
            warn_once(
                "LSTM with projections is not supported with oneDNN. Using default implementation."
            )

    def _layers(self, x: Tensor, sizes: list[int] | None, state: State) -> tuple[Any, State]:
        self._warn_of_projections(x)
        directions = 2 if self.bidirectional else 1
        cell, last = CELLS[self.mode], []
        weights = [self._row(names) for names in self._all_weights]
        for layer in range(self.num_layers):
            outputs = []
            for direction in range(directions):
                at = layer * directions + direction
                first = tuple(s[at] for s in state)
                if sizes is None:
                    out, end = over_time(cell, x, first, weights[at], direction == 1)
                else:
                    out, end = over_packed(cell, x, sizes, first, weights[at], direction == 1)
                outputs.append(out)
                last.append(end)
            x = outputs[0] if directions == 1 else mindtorch.cat(outputs, -1)
            if self.dropout and layer < self.num_layers - 1:
                x = F.dropout(x, self.dropout, self.training)
        return x, tuple(mindtorch.stack(list(rows)) for rows in zip(*last, strict=True))

    def _row(self, names: list[str]) -> list[Any]:
        values = [getattr(self, name) for name in names]
        if not self.bias:
            values[2:2] = [None, None]
        return values


def _check_ranks(states: State, batched: bool) -> None:
    """RuntimeError in torch's words where the states of an LSTM have other dims than its input."""
    rank = 3 if batched else 2
    if any(s.dim() != rank for s in states):
        kind = "batched 3" if batched else "unbatched 2"
        raise RuntimeError(
            f"For {kind}-D input, hx and cx should also be {rank}-D but got"
            f" ({states[0].dim()}-D, {states[1].dim()}-D) tensors"
        )


def _check(mode: str, hidden: int, layers: int, dropout: float, proj: int) -> None:
    if (
        not isinstance(dropout, numbers.Number)
        or not 0 <= dropout <= 1
        or isinstance(dropout, bool)
    ):
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an "
            "element being zeroed"
        )
    if dropout > 0 and layers == 1:
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout "
            f"expects num_layers greater than 1, but got dropout={dropout} and num_layers={layers}",
            stacklevel=4,
        )
    if not isinstance(hidden, int):
        raise TypeError(f"hidden_size should be of type int, got: {type(hidden).__name__}")
    if hidden <= 0:
        raise ValueError("hidden_size must be greater than zero")
    if layers <= 0:
        raise ValueError("num_layers must be greater than zero")
    if proj < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj >= hidden:
        raise ValueError("proj_size has to be smaller than hidden_size")
    if mode not in _GATES:
        raise ValueError("Unrecognized RNN mode: " + mode)


class RNN(RNNBase):
    """Elman layers with tanh or relu."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if len(args) > 3:
            self.nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            self.nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if self.nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{self.nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        super().__init__(f"RNN_{self.nonlinearity.upper()}", *args, **kwargs)


class LSTM(RNNBase):
    """Long short-term memory layers."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    """Gated recurrent layers."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)
