"""Owns what the inputs and results of an exported graph are (torch.export.graph_signature)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto


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


@dataclass
class ExportGraphSignature:
    """The placeholders and results of a graph, in their order."""

    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]

    def _targets(self, kind: InputKind) -> dict[str, str]:
        return {s.arg.name: str(s.target) for s in self.input_specs if s.kind is kind}

    def _results(self, kind: OutputKind) -> dict[str, str]:
        return {s.arg.name: str(s.target) for s in self.output_specs if s.kind is kind}

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters that are inputs."""
        return tuple(self._targets(InputKind.PARAMETER).values())

    @property
    def buffers(self) -> tuple[str, ...]:
        """Names of the buffers that are inputs."""
        return tuple(self._targets(InputKind.BUFFER).values())

    @property
    def non_persistent_buffers(self) -> tuple[str, ...]:
        """Names of those that are no part of the state."""
        return tuple(str(s.target) for s in self.input_specs if s.persistent is False)

    @property
    def lifted_tensor_constants(self) -> tuple[str, ...]:
        """Names of tensors that are neither."""
        return tuple(self._targets(InputKind.CONSTANT_TENSOR).values())

    @property
    def lifted_custom_objs(self) -> tuple[str, ...]:
        """None: there are no such objects."""
        return ()

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
    def inputs_to_parameters(self) -> Mapping[str, str]:
        """Nodes of parameters and their names."""
        return self._targets(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> Mapping[str, str]:
        """Nodes of buffers and their names."""
        return self._targets(InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self) -> Mapping[str, str]:
        """Nodes of other tensors and their names."""
        return self._targets(InputKind.CONSTANT_TENSOR)

    @property
    def buffers_to_mutate(self) -> Mapping[str, str]:
        """Results that become buffers, and the buffers' names."""
        return self._results(OutputKind.BUFFER_MUTATION)

    @property
    def user_inputs_to_mutate(self) -> Mapping[str, str]:
        """Results that become inputs, and the inputs' names."""
        return self._results(OutputKind.USER_INPUT_MUTATION)

    @property
    def parameters_to_mutate(self) -> Mapping[str, str]:
        """Results that become parameters, and the parameters' names."""
        return self._results(OutputKind.PARAMETER_MUTATION)

    @property
    def backward_signature(self) -> None:
        """None: graphs have no backward part."""

    def __str__(self) -> str:
        inputs = "\n".join(map(str, self.input_specs))
        outputs = "\n".join(map(str, self.output_specs))
        return f"\n# inputs\n{inputs}\n\n# outputs\n{outputs}\n"
