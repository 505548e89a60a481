"""torch.ao.nn.quantized.dynamic: recurrent layers of float32 with weights of integers."""

from __future__ import annotations

from typing import Any, ClassVar

import mindtorch as torch
from mindtorch import Tensor, nn
from mindtorch.nn.utils.rnn import PackedSequence

from ..._kernels import linear_dynamic
from ...modules.linear import repr_without
from .linear import observed_weight, weight_observer

_Packed = tuple[Any, Any, Any, Any]  # weights and biases of the input and of the hidden state


class PackedParameter(nn.Module):
    """The weights of one layer in one direction."""

    def __init__(self, param: _Packed) -> None:
        super().__init__()
        self.param = param

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "param"] = self.param

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any],
        strict: bool, *rest: Any,
    ) -> None:  # fmt: skip
        self.param = state_dict.pop(prefix + "param")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *rest)


def _random_weights(
    gates: int, inputs: int, hidden: int, dtype: torch.dtype, scale: float
) -> _Packed:
    """Weights and biases of any values, drawn in torch's order."""
    weights: list[Any] = [torch.randn(gates, inputs), torch.randn(gates, hidden)]
    if dtype is torch.qint8:
        weights = [torch.quantize_per_tensor(w, scale, 0, dtype) for w in weights]
    return weights[0], torch.randn(gates), weights[1], torch.randn(gates)


def _lstm_step(gates_x: Tensor, state: tuple[Tensor, ...], packed: _Packed) -> tuple[Tensor, ...]:
    hidden, cell = state
    gates = linear_dynamic(hidden, packed[2], packed[3]) + gates_x
    i, f, g, o = gates.chunk(4, 1)
    cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
    return o.sigmoid() * cell.tanh(), cell


def _gru_step(gates_x: Tensor, state: tuple[Tensor, ...], packed: _Packed) -> tuple[Tensor, ...]:
    (hidden,) = state
    gates = linear_dynamic(hidden, packed[2], packed[3])
    xr, xz, xn = gates_x.chunk(3, 1)
    hr, hz, hn = gates.chunk(3, 1)
    reset, update = (hr + xr).sigmoid(), (hz + xz).sigmoid()
    new = (hn * reset + xn).tanh()
    return ((hidden - new) * update + new,)


class RNNBase(nn.Module):
    """LSTM or GRU over `[L, N, input_size]`, or `[N, L, input_size]` where batch_first."""

    _version = 2
    _mode: ClassVar[str]

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
        dtype: torch.dtype = torch.qint8,
    ) -> None:  # fmt: skip
        super().__init__()
        self.mode = self._mode
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.dtype, self.version = bidirectional, dtype, 2
        self.training = False
        directions, gates = 2 if bidirectional else 1, (4 if self._mode == "LSTM" else 3)
        sizes = [input_size] * directions
        sizes += [hidden_size * directions] * (directions * (num_layers - 1))
        self._all_weight_values = nn.ModuleList(
            PackedParameter(_random_weights(gates * hidden_size, size, hidden_size, dtype, 0.1))
            for size in sizes
        )

    def _get_name(self) -> str:
        return f"DynamicQuantized{self._mode}"

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        for name, usual in (("num_layers", 1), ("bias", True), ("batch_first", False),
                            ("dropout", 0), ("bidirectional", False)):  # fmt: skip
            if getattr(self, name) != usual:
                parts.append(f"{name}={getattr(self, name)}")
        return ", ".join(parts)

    def __repr__(self) -> str:
        return repr_without(self, (PackedParameter, nn.ModuleList))

    def _run(self, x: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """`x` is `[L, N, input_size]`; each state `[layers · directions, N, hidden_size]`."""
        step = _lstm_step if self._mode == "LSTM" else _gru_step
        directions, last = 2 if self.bidirectional else 1, []
        for layer in range(self.num_layers):
            outputs = []
            for direction in range(directions):
                index = layer * directions + direction
                packed = self._all_weight_values[index].param
                now = tuple(part[index] for part in state)
                steps = linear_dynamic(x, packed[0], packed[1]).unbind(0)
                places = range(len(steps) - 1, -1, -1) if direction else range(len(steps))
                result: dict[int, Tensor] = {}
                for i in places:
                    now = step(steps[i], now, packed)
                    result[i] = now[0]
                outputs.append(torch.stack([result[i] for i in range(len(steps))]))
                last.append(now)
            x = torch.cat(outputs, -1) if directions == 2 else outputs[0]
            if self.dropout and self.training and layer < self.num_layers - 1:
                x = torch.dropout(x, self.dropout, True)
        return x, tuple(torch.stack(parts) for parts in zip(*last, strict=True))

    def forward(self, input: Any, hx: Any = None) -> Any:
        if isinstance(input, PackedSequence):
            raise NotImplementedError(
                f"torch.ao.nn.quantized.dynamic.{self._mode}: mindtorch takes padded sequences,"
                " not PackedSequence"
            )
        if input.dim() != 3:
            raise RuntimeError(f"input must have 3 dimensions, got {input.dim()}")
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. Expected"
                f" {self.input_size}, got {input.size(-1)}"
            )
        x = input.transpose(0, 1) if self.batch_first else input
        size = (self.num_layers * (2 if self.bidirectional else 1), x.size(1), self.hidden_size)
        count = 2 if self._mode == "LSTM" else 1
        if hx is None:
            zeros = torch.zeros(size, dtype=x.dtype, device=x.device)
            hx = (zeros, zeros) if count == 2 else zeros
        state = hx if count == 2 else (hx,)
        for i, part in enumerate(state):
            if tuple(part.size()) != size:
                which = f"hidden[{i}]" if count == 2 else "hidden"
                raise RuntimeError(f"Expected {which} size {size}, got {list(part.size())}")
        output, state = self._run(x, tuple(state))
        output = output.transpose(0, 1) if self.batch_first else output
        return output, state if count == 2 else state[0]

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        """With the weights of `mod`, by its `qconfig`."""
        if type(mod) not in (nn.LSTM, nn.GRU):
            raise AssertionError(
                "nn.quantized.dynamic.RNNBase.from_float only works for nn.LSTM and nn.GRU"
            )
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        dtype = weight_observer(mod).dtype
        if dtype not in (torch.qint8, torch.float16):
            raise RuntimeError(f"Unsupported dtype for dynamic RNN quantization: {dtype}")
        if not mod.bias:
            raise AssertionError("mod.bias must be True")
        new = (LSTM if mod.mode == "LSTM" else GRU)(
            mod.input_size, mod.hidden_size, mod.num_layers, mod.bias, mod.batch_first,
            mod.dropout, mod.bidirectional, dtype,
        )  # fmt: skip
        new._all_weight_values = nn.ModuleList()
        for layer in range(mod.num_layers):
            for suffix in ("", "_reverse") if mod.bidirectional else ("",):
                packed: list[Any] = []
                for kind in ("ih", "hh"):
                    weight = getattr(mod, f"weight_{kind}_l{layer}{suffix}")
                    packed.append(observed_weight(weight, weight_observer(mod)))
                    packed.append(getattr(mod, f"bias_{kind}_l{layer}{suffix}"))
                new._all_weight_values.append(PackedParameter(tuple(packed)))
        return new

    def _parts(self, what: str, places: tuple[int, int]) -> dict[str, Any]:
        directions = 2 if self.bidirectional else 1
        return {
            f"{what}_{kind}_l{i // directions}{'_reverse' if i % directions else ''}": m.param[p]
            for i, m in enumerate(self._all_weight_values)
            for kind, p in zip(("ih", "hh"), places, strict=True)
        }

    def get_weight(self) -> dict[str, Any]:
        """Name → weight."""
        return self._parts("weight", (0, 2))

    def get_bias(self) -> dict[str, Tensor]:
        """Name → bias."""
        return self._parts("bias", (1, 3))


class LSTM(RNNBase):
    """An LSTM with weights of integers."""

    _FLOAT_MODULE = nn.LSTM
    _mode = "LSTM"


class GRU(RNNBase):
    """A GRU with weights of integers."""

    _FLOAT_MODULE = nn.GRU
    _mode = "GRU"


class RNNCellBase(nn.Module):
    """One step over `[N, input_size]`."""

    _chunks: ClassVar[int]

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True,
        dtype: torch.dtype = torch.qint8, nonlinearity: str = "tanh",
    ) -> None:  # fmt: skip
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        self.weight_dtype, self.nonlinearity = dtype, nonlinearity
        gates = self._chunks * hidden_size
        biases = [torch.randn(gates), torch.randn(gates)] if bias else [None, None]
        weights: list[Any] = [torch.randn(gates, input_size), torch.randn(gates, hidden_size)]
        if dtype is torch.qint8:
            weights = [torch.quantize_per_tensor(w, 1.0, 0, dtype) for w in weights]
        self.packed: _Packed = (weights[0], biases[0], weights[1], biases[1])

    def _get_name(self) -> str:
        return f"DynamicQuantized{type(self).__name__}"

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        return text if self.nonlinearity == "tanh" else f"{text}, nonlinearity={self.nonlinearity}"

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        """With the weights of `mod`, by its `qconfig`."""
        kinds = {nn.LSTMCell: LSTMCell, nn.GRUCell: GRUCell, nn.RNNCell: RNNCell}
        if type(mod) not in kinds:
            raise AssertionError(
                "nn.quantized.dynamic.RNNCellBase.from_float only works for nn.LSTMCell, nn.GRUCell"
                " and nn.RNNCell"
            )
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        dtype = weight_observer(mod).dtype
        if dtype not in (torch.qint8, torch.float16):
            raise RuntimeError(f"Unsupported dtype for dynamic RNN quantization: {dtype}")
        if not mod.bias:
            raise AssertionError("mod.bias must be True")
        more = {"nonlinearity": mod.nonlinearity} if isinstance(mod, nn.RNNCell) else {}
        new = kinds[type(mod)](mod.input_size, mod.hidden_size, mod.bias, dtype, **more)
        new.packed = (
            observed_weight(mod.weight_ih, weight_observer(mod)), mod.bias_ih,
            observed_weight(mod.weight_hh, weight_observer(mod)), mod.bias_hh,
        )  # fmt: skip
        return new

    def _gates(self, input: Tensor) -> Tensor:
        if input.size(1) != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {input.size(1)}, expected"
                f" {self.input_size}"
            )
        return linear_dynamic(input, self.packed[0], self.packed[1])

    def _zeros(self, input: Tensor) -> Tensor:
        return torch.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)


class LSTMCell(RNNCellBase):
    """One step of an LSTM."""

    _chunks = 4

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, ...]:
        state = (self._zeros(input),) * 2 if hx is None else hx
        return _lstm_step(self._gates(input), state, self.packed)


class GRUCell(RNNCellBase):
    """One step of a GRU."""

    _chunks = 3

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        state = self._zeros(input) if hx is None else hx
        return _gru_step(self._gates(input), (state,), self.packed)[0]


class RNNCell(RNNCellBase):
    """One step of a plain recurrent layer."""

    _chunks = 1

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        state = self._zeros(input) if hx is None else hx
        total = linear_dynamic(state, self.packed[2], self.packed[3]) + self._gates(input)
        return total.relu() if self.nonlinearity == "relu" else total.tanh()
