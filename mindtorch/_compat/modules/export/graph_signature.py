"""Owns what the inputs and results of an exported graph are (torch.export.graph_signature)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any


@dataclass
class TensorArgument:
    """A tensor: the name of its node."""

    name: str


@dataclass
class SymIntArgument:
    """A size that may change: the name of its node."""

    name: str


@dataclass
class ConstantArgument:
    """What is no tensor: its value."""

    name: str
    value: object = None


class InputKind(Enum):
    """What a placeholder stands for."""

    USER_INPUT = auto()
    PARAMETER = auto()
    BUFFER = auto()
    CONSTANT_TENSOR = auto()
    CUSTOM_OBJ = auto()
    TOKEN = auto()


class OutputKind(Enum):
    """What a result is."""

    USER_OUTPUT = auto()
    LOSS_OUTPUT = auto()
    BUFFER_MUTATION = auto()
    PARAMETER_MUTATION = auto()
    GRADIENT_TO_PARAMETER = auto()
    GRADIENT_TO_USER_INPUT = auto()
    USER_INPUT_MUTATION = auto()
    TOKEN = auto()


@dataclass
class InputSpec:
    """A placeholder: its kind, its node, and the name in the module's state."""

    kind: InputKind
    arg: TensorArgument | SymIntArgument | ConstantArgument
    target: str | None
    persistent: bool | None = None

    def __str__(self) -> str:
        target = f" target='{self.target}'" if self.target is not None else ""
        persistent = f" persistent={self.persistent}" if self.persistent is not None else ""
        return f"{self.arg.name}: {self.kind.name}{target}{persistent}"


@dataclass
class OutputSpec:
    """A result: its kind, its node, and what of the module's state it changes."""

    kind: OutputKind
    arg: TensorArgument | SymIntArgument | ConstantArgument
    target: str | None

    def __str__(self) -> str:
        target = f" target='{self.target}'" if self.target is not None else ""
        return f"{self.arg.name}: {self.kind.name}{target}"


def _targets_of(kind: InputKind | OutputKind) -> Any:
    """A property: nodes of a kind, and the names in the module's state that they stand for."""

    def targets(signature: ExportGraphSignature) -> Mapping[str, str]:
        inputs: list[InputSpec | OutputSpec] = [*signature.input_specs]
        specs = [*inputs, *signature.output_specs]
        return {s.arg.name: str(s.target) for s in specs if s.kind is kind}

    return property(targets)


def _names_of(kind: InputKind) -> Any:
    """A property: names in the module's state that inputs of a kind stand for."""

    def names(signature: ExportGraphSignature) -> tuple[str, ...]:
        return tuple(str(s.target) for s in signature.input_specs if s.kind is kind)

    return property(names)


@dataclass
class ExportGraphSignature:
    """The placeholders and results of a graph, in their order."""

    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]

    parameters = _names_of(InputKind.PARAMETER)
    buffers = _names_of(InputKind.BUFFER)
    lifted_tensor_constants = _names_of(InputKind.CONSTANT_TENSOR)
    lifted_custom_objs = _names_of(InputKind.CUSTOM_OBJ)
    inputs_to_parameters = _targets_of(InputKind.PARAMETER)
    inputs_to_buffers = _targets_of(InputKind.BUFFER)
    inputs_to_lifted_tensor_constants = _targets_of(InputKind.CONSTANT_TENSOR)
    inputs_to_lifted_custom_objs = _targets_of(InputKind.CUSTOM_OBJ)
    buffers_to_mutate = _targets_of(OutputKind.BUFFER_MUTATION)
    parameters_to_mutate = _targets_of(OutputKind.PARAMETER_MUTATION)
    user_inputs_to_mutate = _targets_of(OutputKind.USER_INPUT_MUTATION)

    @property
    def non_persistent_buffers(self) -> tuple[str, ...]:
        """Names of those that are no part of the state."""
        return tuple(str(s.target) for s in self.input_specs if s.persistent is False)

    @property
    def user_inputs(self) -> tuple[object, ...]:
        """Nodes of the tensors that a call gives, and other values."""
        arguments = [s.arg for s in self.input_specs if s.kind is InputKind.USER_INPUT]
        return tuple(a.value if isinstance(a, ConstantArgument) else a.name for a in arguments)

    @property
    def user_outputs(self) -> tuple[object, ...]:
        """Nodes of the results."""
        arguments = [s.arg for s in self.output_specs if s.kind is OutputKind.USER_OUTPUT]
        return tuple(a.value if isinstance(a, ConstantArgument) else a.name for a in arguments)

    @property
    def backward_signature(self) -> None:
        """None: graphs have no backward part."""

    def __str__(self) -> str:
        inputs = "\n".join(map(str, self.input_specs))
        outputs = "\n".join(map(str, self.output_specs))
        return f"\n# inputs\n{inputs}\n\n# outputs\n{outputs}\n"
