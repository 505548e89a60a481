"""Owns RNN, LSTM and GRU: weights, layers and directions; cells
stand in _rnn_cells, steps in _recurrence."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable
from typing import Any
from weakref import ref

import mindtorch

from ..._autograd.grad_mode import LOCAL
from ..._compat.warn_once import warn_once
from ..._tensor.device import DeviceLike, device as Device
from ..._tensor.dtype import dtype as Dtype
from ..._tensor.tensor import Tensor
from .. import functional as F, init
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
        rate = float(dropout)
        _check(mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size)
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout: float = rate
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._flat_weight_refs: list[ref[Tensor] | None] = []
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for direction in range(2 if bidirectional else 1):
                self._make_weights(layer, direction, device, dtype)
        self._flat_weights_names = [name for row in self._all_weights for name in row]
        self._init_flat_weights()
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

    def _init_flat_weights(self) -> None:
        names = self._flat_weights_names
        self._flat_weights: list[Any] = [getattr(self, name, None) for name in names]
        self._flat_weight_refs = [None if w is None else ref(w) for w in self._flat_weights]

    def __setattr__(self, name: str, value: Any) -> None:
        names = self.__dict__.get("_flat_weights_names", ())
        if name in names:
            self._flat_weights[names.index(name)] = value
        super().__setattr__(name, value)

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> Any:
        self._flat_weight_refs = []
        result = super()._apply(fn, recurse)
        self._init_flat_weights()
        return result

    def _update_flat_weights(self) -> None:
        """Looks the weights up again where another tensor stands under the name of one."""
        for old, name in zip(self._flat_weight_refs, self._flat_weights_names, strict=True):
            weight = getattr(self, name, None)
            if weight is not None and old is not None and old() is not weight:
                self._init_flat_weights()
                return

    def __getstate__(self) -> dict[str, Any]:
        self._update_flat_weights()
        return {k: v for k, v in self.__dict__.items() if k != "_flat_weight_refs"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("proj_size", 0)
        names = [name for row in self._all_weights for name in row]
        self.__dict__.setdefault("_flat_weights_names", names)
        self._init_flat_weights()

    @property
    def all_weights(self) -> list[list[Any]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

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

    def _run(self, input: Any, hx: Any) -> tuple[Any, State]:
        """(output, last state) of a tensor or a packed sequence; the state is a tuple here."""
        self._update_flat_weights()
        if isinstance(input, PackedSequence):
            return self._run_packed(input, hx)
        if input.dim() not in (2, 3):
            name = self.mode.partition("_")[0]
            raise ValueError(
                f"{name}: Expected input to be 2D or 3D, got {input.dim()}D"
                + " tensor" * (name == "RNN")
                + " instead"
            )
        batched = input.dim() == 3
        x = input if batched else input.unsqueeze(0 if self.batch_first else 1)
        if hx is not None:
            hx = self._ranked(hx, batched)
        batch = x.size(0 if self.batch_first else 1)
        hx = self._zero_state(x, batch) if hx is None else hx
        self.check_forward_args(x, hx, None)
        x = x.transpose(0, 1) if self.batch_first else x
        if x.size(0) == 0:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        out, last = self._layers(x, None, self._as_tuple(hx))
        whole = self.mode == "LSTM" and not (self.proj_size or self.bidirectional)
        if whole and out._fn is not None and out.dtype is mindtorch.float32:
            out._fn.label = "MkldnnRnnLayerBackward0"  # oneDNN's, one for each layer
        if self.batch_first:
            out = out.transpose(0, 1)
            if out._fn is not None and self.mode != "LSTM":  # torch turns those in place
                out._fn.label = "TransposeBackward1"
        if not batched:
            squeezed = tuple(s.squeeze(1) for s in last)
            return out.squeeze(0 if self.batch_first else 1), squeezed
        return out, last

    def _run_packed(self, packed: PackedSequence, hx: Any) -> tuple[Any, State]:
        data, batch_sizes, order, back = packed
        sizes = [int(size) for size in batch_sizes.tolist()]
        hx = self._zero_state(data, sizes[0]) if hx is None else self.permute_hidden(hx, order)
        if self.mode != "LSTM":  # torch's LSTM leaves it to its kernels
            self.check_forward_args(data, hx, batch_sizes)
        out, last = self._layers(data, sizes, self._as_tuple(hx))
        last = tuple(self._permuted(s, back) for s in last)
        return PackedSequence(out, batch_sizes, order, back), last

    def _as_tuple(self, hx: Any) -> State:
        if self.mode != "LSTM":
            return (hx,)
        if len(hx) != 2:
            raise RuntimeError("lstm expects two hidden states")
        return (hx[0], hx[1])

    def _ranked(self, hx: Any, batched: bool) -> Any:
        """The state with a batch; RuntimeError where its dims are not those of the input."""
        rank = 3 if batched else 2
        states = (hx[0], hx[1]) if self.mode == "LSTM" else (hx,)
        if any(s.dim() != rank for s in states):
            kind = "batched 3" if batched else "unbatched 2"
            dims = ", ".join(f"{s.dim()}-D" for s in states)
            two = self.mode == "LSTM"
            raise RuntimeError(
                f"For {kind}-D input, {'hx and cx' if two else 'hx'} should also be {rank}-D but"
                f" got {f'({dims}) tensors' if two else f'{dims} tensor'}"
            )
        if batched:
            return hx
        return tuple(s.unsqueeze(1) for s in states) if self.mode == "LSTM" else hx.unsqueeze(1)

    def _zero_state(self, x: Tensor, batch: int) -> Any:
        rows = self.num_layers * (2 if self.bidirectional else 1)

        def zeros(width: int) -> Tensor:
            return mindtorch.zeros((rows, batch, width), dtype=x.dtype, device=x.device)

        first = zeros(self.proj_size or self.hidden_size)
        return (first, zeros(self.hidden_size)) if self.mode == "LSTM" else first

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """ValueError for another dtype than the weights', RuntimeError for other dims or width."""
        weight = self._flat_weights[0]
        if input.dtype is not weight.dtype and not LOCAL.autocast:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype})."
                f" Convert input: input.to({weight.dtype}), or convert model:"
                f" model.to({input.dtype})"
            )
        rank = 3 if batch_sizes is None else 2
        if input.dim() != rank:
            raise RuntimeError(f"input must have {rank} dimensions, got {input.dim()}")
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, "
                f"got {input.size(-1)}"
            )

    def get_expected_hidden_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """The shape of the first state for an input."""
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.size(0 if self.batch_first else 1)
        rows = self.num_layers * (2 if self.bidirectional else 1)
        return rows, batch, self.proj_size or self.hidden_size

    def check_hidden_size(
        self, hx: Tensor, expected_hidden_size: tuple[int, int, int],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:  # fmt: skip
        """RuntimeError where a state has another shape."""
        if hx.shape != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Checks an input and its first state as torch does."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The state in another order of the batch."""
        return self._permuted(hx, permutation)

    @staticmethod
    def _permuted(state: Tensor, permutation: Tensor | None) -> Tensor:
        return state if permutation is None else state.index_select(1, permutation)

    def _warn_of_projections(self, x: Tensor) -> None:
        if self.proj_size and x.dtype is not mindtorch.float64 and x.device.type == "cpu":
            warn_once(
                "LSTM with projections is not supported with oneDNN. Using default implementation."
            )

    def _layers(self, x: Tensor, sizes: list[int] | None, state: State) -> tuple[Any, State]:
        self._warn_of_projections(x)
        directions = 2 if self.bidirectional else 1
        cell, last = CELLS[self.mode], []
        if any(len(s) != self.num_layers * directions for s in state):
            raise RuntimeError("Expected more hidden states in stacked_rnn")
        weights = self._rows()
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

    def _rows(self) -> list[list[Any]]:
        """The weights of each layer and direction; None for biases that are off."""
        width = (4 if self.bias else 2) + bool(self.proj_size)
        flat = self._flat_weights
        rows = [list(flat[at : at + width]) for at in range(0, len(flat), width)]
        if not self.bias:
            for row in rows:
                row[2:2] = [None, None]
        return rows


def _check(
    mode: str, inputs: int, hidden: int, layers: int, bias: bool, batch_first: bool,
    dropout: float, proj: int,
) -> None:  # fmt: skip
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
    for name, value in (("bias", bias), ("batch_first", batch_first)):
        if not isinstance(value, bool):
            raise TypeError(f"{name} should be of type bool, got: {type(value).__name__}")
    for name, size in (("input_size", inputs), ("hidden_size", hidden)):
        if not isinstance(size, int):
            raise TypeError(f"{name} should be of type int, got: {type(size).__name__}")
        if size <= 0:
            raise ValueError(f"{name} must be greater than zero")
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

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        """(output, last state h)."""
        out, (last,) = self._run(input, hx)
        return out, last


class LSTM(RNNBase):
    """Long short-term memory layers."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """The shape of the first cell state for an input."""
        rows, batch, _ = self.get_expected_hidden_size(input, batch_sizes)
        return rows, batch, self.hidden_size

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Checks an input and its first states as torch does."""
        self.check_input(input, batch_sizes)
        sizes = self.get_expected_hidden_size(input, batch_sizes)
        self.check_hidden_size(hidden[0], sizes, "Expected hidden[0] size {}, got {}")
        sizes = self.get_expected_cell_size(input, batch_sizes)
        self.check_hidden_size(hidden[1], sizes, "Expected hidden[1] size {}, got {}")

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """Both states in another order of the batch."""
        if permutation is None:
            return hx
        return self._permuted(hx[0], permutation), self._permuted(hx[1], permutation)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, State]:
        """(output, (last h, last c))."""
        return self._run(input, hx)


class GRU(RNNBase):
    """Gated recurrent layers."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        """(output, last state h)."""
        out, (last,) = self._run(input, hx)
        return out, last
