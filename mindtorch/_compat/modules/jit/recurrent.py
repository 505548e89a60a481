"""Owns recurrent layers in a trace: each is one operator."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from types import FrameType
from typing import Any

import mindtorch
from mindtorch._compat.torchscript.schemas import operators
from mindtorch._compat.torchscript.traced_graph import declaration_of
from mindtorch._tensor.tensor import Tensor
from mindtorch.fx.fake import outside
from mindtorch.nn.modules.module import Module
from mindtorch.nn.modules.rnn import GRU, LSTM, RNN

from .sizes import CONSTANT, SizeNumber, TracerWarning, plain_numbers


@dataclass
class RecurrentStep:
    """A call of a recurrent layer with a batch of sequences."""

    module: Any
    input: Tensor
    states: tuple[Tensor, ...]

    @classmethod
    def of(cls, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The step of a call; None for other modules, and for packed or single sequences."""
        if not isinstance(module, LSTM | GRU | RNN) or module.__dict__.get("proj_size"):
            return None
        values = dict(zip(("input", "hx"), args, strict=False)) | kwargs
        first, states = values.get("input"), values.get("hx")
        if not isinstance(first, Tensor) or first.dim() != 3:
            return None
        listed = () if states is None else states if isinstance(states, tuple) else (states,)
        return cls(module, first, tuple(listed))

    def warn(self) -> None:
        """What torch says of the checks that it makes of sizes."""
        for _ in range(7 if isinstance(self.module, LSTM) else 4):
            warnings.warn(CONSTANT.format("Python boolean"), TracerWarning, stacklevel=6)

    def record(self, recorder: Any, result: Any, frame: FrameType) -> None:
        """Note the operator, and the first states where none are given."""
        module, long = self.module, isinstance(self.module, LSTM)
        names = {id(self.input): "input"} | {id(s): "hx" for s in self.states}
        states = self.states or self._zeros(recorder, frame, names, 1 + long)
        name = {"RNN_TANH": "rnn_tanh", "RNN_RELU": "rnn_relu"}.get(
            module.mode, module.mode.lower()
        )
        schema = declaration_of(name, "input")
        if schema is None:
            raise NotImplementedError(name)
        values = {
            "input": self.input, "hx": list(states) if long else states[0],
            "params": [w for group in module.all_weights for w in group],
            "has_biases": module.bias, "num_layers": module.num_layers,
            "dropout": float(module.dropout), "train": module.training,
            "bidirectional": module.bidirectional, "batch_first": module.batch_first,
        }  # fmt: skip
        output, last = result
        results = (output, *(last if long else (last,)))
        recorder.operator(f"aten::{name}", schema, values, results, frame, names)

    def _zeros(
        self, recorder: Any, frame: FrameType, names: dict[int, str], count: int
    ) -> tuple[Tensor, ...]:
        module, schema = self.module, declaration_of("zeros", "default")
        if schema is None or not operators("aten::zeros"):
            raise NotImplementedError("zeros")
        batch: SizeNumber = recorder.size(
            self.input, 0 if module.batch_first else 1, frame, names.get(id(self.input), "")
        )
        recorder.values[id(batch)].named("max_batch_size")
        layers = module.num_layers * (1 + module.bidirectional)
        zeros_of = []
        for _ in range(count):
            with outside():
                shape = (layers, int(plain_numbers(batch)), module.hidden_size)
                zeros = mindtorch.zeros(shape, dtype=self.input.dtype, device=self.input.device)
            values = {
                "size": [layers, batch, module.hidden_size], "dtype": self.input.dtype,
                "device": self.input.device, "pin_memory": False,
            }  # fmt: skip
            recorder.operator("aten::zeros", schema, values, zeros, frame, names)
            names[id(zeros)] = "hx"
            zeros_of.append(zeros)
        return tuple(zeros_of)
