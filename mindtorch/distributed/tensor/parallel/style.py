"""Owns the styles of torch.distributed.tensor.parallel: how a module's tensors lie over a mesh."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from mindtorch import nn

from ...._tensor.tensor import Tensor
from ...device_mesh import DeviceMesh
from .._api import DTensor, distribute_tensor
from .._filling import distribute_module
from .._redistribute import Placements
from ..placement_types import Placement, Replicate, Shard

Layouts = tuple[Placement | None, ...]


class ParallelStyle(ABC):
    """What `parallelize_module` does to a module."""

    src_data_rank: int | None = 0
    _fields: tuple[str, ...] = ()

    @abstractmethod
    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module: ...

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)}" for name in self._fields)
        return f"{type(self).__name__}({values})"


def _as_distributed(value: Tensor, mesh: DeviceMesh, now: Placements, then: Placements) -> DTensor:
    """A module's input or output over the mesh: it lies as `now`, and is to lie as `then`."""
    if not isinstance(value, DTensor):
        value = DTensor.from_local(value, mesh, now)
    return value.redistribute(placements=then) if now != then else value


class _LayerStyle(ParallelStyle):
    """A style of layers whose parameters are cut along dimensions by their names."""

    _fields = ("input_layouts", "output_layouts", "use_local_output")
    _defaults: tuple[Placement, Placement]
    _cuts: dict[type, tuple[dict[str, Placement], Placement]]

    def __init__(
        self, *, input_layouts: Placement | None = None, output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:  # fmt: skip
        self.input_layouts = (input_layouts or self._defaults[0],)
        self.output_layouts = (output_layouts or self._defaults[1],)
        self.use_local_output = use_local_output

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        kind = next((k for k in self._cuts if isinstance(module, k)), None)
        if kind is None:
            raise NotImplementedError(
                f"{type(self).__name__} currently only support nn.Linear and nn.Embedding!"
            )
        cuts, layout = self._cuts[kind]
        self.desired_input_layouts = (layout,)

        def partition(name: str, layer: nn.Module, mesh: DeviceMesh) -> None:
            for key, p in list(layer._parameters.items()):
                if p is not None:
                    spread = distribute_tensor(
                        p, mesh, [cuts[key]], src_data_rank=self.src_data_rank
                    )
                    layer.register_parameter(key, nn.Parameter(spread, p.requires_grad))

        def prepare(layer: nn.Module, inputs: Any, mesh: DeviceMesh) -> DTensor:
            return _as_distributed(inputs[0], mesh, self.input_layouts, self.desired_input_layouts)

        def finish(layer: nn.Module, output: DTensor, mesh: DeviceMesh) -> Tensor:
            if output.placements != self.output_layouts:
                output = output.redistribute(placements=self.output_layouts)
            return output.to_local() if self.use_local_output else output

        return distribute_module(module, device_mesh, partition, prepare, finish)


class ColwiseParallel(_LayerStyle):
    """Linear layers and embeddings by their outputs; NotImplementedError for other modules."""

    _defaults = (Replicate(), Shard(-1))
    _cuts = {
        nn.Linear: ({"weight": Shard(0), "bias": Shard(0)}, Replicate()),
        nn.Embedding: ({"weight": Shard(1)}, Replicate()),
    }


class RowwiseParallel(_LayerStyle):
    """Linear layers by their inputs, embeddings by their rows; NotImplementedError for others."""

    _defaults = (Shard(-1), Replicate())
    _cuts = {
        nn.Linear: ({"weight": Shard(1), "bias": Replicate()}, Shard(-1)),
        nn.Embedding: ({"weight": Shard(0)}, Replicate()),
    }


class SequenceParallel(ParallelStyle):
    """Norms and dropout on parts along a sequence; parameters are copies."""

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.sequence_sharding = (Shard(sequence_dim),)
        self.use_local_output = use_local_output

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        def partition(name: str, layer: nn.Module, mesh: DeviceMesh) -> None:
            for key, p in layer.named_parameters():
                layer.register_parameter(key, nn.Parameter(DTensor.from_local(p, mesh)))

        def prepare(layer: nn.Module, inputs: Any, mesh: DeviceMesh) -> DTensor:
            value = inputs[0]
            if not isinstance(value, Tensor):
                raise ValueError(
                    f"expecting input of {layer} to be a torch.Tensor or DTensor, but got {value}"
                )
            now = value.placements if isinstance(value, DTensor) else self.sequence_sharding
            return _as_distributed(value, mesh, now, self.sequence_sharding)

        def finish(layer: nn.Module, output: DTensor, mesh: DeviceMesh) -> Tensor:
            return output.to_local() if self.use_local_output else output

        return distribute_module(module, device_mesh, partition, prepare, finish)

    def __repr__(self) -> str:
        return (
            f"SequenceParallel(sequence_dim={self.sequence_sharding[0].dim},"
            f" use_local_output={self.use_local_output})"
        )


def _listed(layouts: Any) -> Any:
    return (layouts,) if isinstance(layouts, Placement) else layouts


class PrepareModuleInput(ParallelStyle):
    """Inputs of a module over the mesh; `desired_…` say how they are to lie."""

    _fields = (
        "input_layouts", "desired_input_layouts", "input_kwarg_layouts",
        "desired_input_kwarg_layouts", "use_local_output",
    )  # fmt: skip

    def __init__(
        self, *, input_layouts: Placement | Layouts | None = None,
        desired_input_layouts: Placement | Layouts | None = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_output: bool = False,
    ) -> None:  # fmt: skip
        self.input_layouts = _listed(input_layouts)
        self.desired_input_layouts = _listed(desired_input_layouts)
        self.use_local_output = use_local_output
        self.with_kwargs = input_kwarg_layouts is not None
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        if self.input_layouts is not None:
            if self.desired_input_layouts is None:
                raise AssertionError("desired module inputs should not be None!")
            if len(self.input_layouts) != len(self.desired_input_layouts):
                raise AssertionError(
                    "input_layouts and desired_input_layouts should have same length!"
                )
        if len(self.input_kwarg_layouts) != len(self.desired_input_kwarg_layouts):
            raise AssertionError(
                "input_kwarg_layouts and desired_input_kwarg_layouts should have same length!"
            )

    def _prepared(
        self, value: object, mesh: DeviceMesh, now: Placement | None, then: Placement | None
    ) -> object:
        if now is None:
            return value
        if not isinstance(value, Tensor):
            raise AssertionError("expecting input to be a torch.Tensor!")
        spread = _as_distributed(value, mesh, (now,), (now if then is None else then,))
        return spread.to_local() if self.use_local_output else spread

    def _inputs(self, inputs: Any, mesh: DeviceMesh) -> Any:
        if self.input_layouts is None:
            return inputs
        if len(inputs) != len(self.input_layouts):
            raise ValueError("module inputs and input_layouts should have same length!")
        layouts = zip(inputs, self.input_layouts, self.desired_input_layouts, strict=True)
        return tuple(self._prepared(value, mesh, now, then) for value, now, then in layouts)

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        if not self.with_kwargs:
            module.register_forward_pre_hook(lambda _, inputs: self._inputs(inputs, device_mesh))
            return module

        def prepare(_: nn.Module, inputs: Any, kwargs: dict[str, Any]) -> Any:
            now, then = self.input_kwarg_layouts, self.desired_input_kwarg_layouts
            named = {
                k: self._prepared(v, device_mesh, now.get(k), then.get(k))
                for k, v in kwargs.items()
            }
            return self._inputs(inputs, device_mesh), named

        module.register_forward_pre_hook(prepare, with_kwargs=True)
        return module


class PrepareModuleOutput(ParallelStyle):
    """Outputs of a module over the mesh; `desired_output_layouts` say how they are to lie."""

    _fields = ("output_layouts", "desired_output_layouts", "use_local_output")

    def __init__(
        self, *, output_layouts: Placement | Layouts, desired_output_layouts: Placement | Layouts,
        use_local_output: bool = True,
    ) -> None:  # fmt: skip
        self.output_layouts = _listed(output_layouts)
        self.desired_output_layouts = _listed(desired_output_layouts)
        self.use_local_output = use_local_output
        if len(self.output_layouts) != len(self.desired_output_layouts):
            raise AssertionError(
                "output_layouts and desired_output_layouts should have same length!"
            )

    def _outputs(self, outputs: Any, mesh: DeviceMesh) -> Any:
        values = outputs if isinstance(outputs, tuple) else (outputs,)
        if len(values) != len(self.output_layouts):
            raise ValueError("module outputs and output_layouts should have same length!")
        spread = []
        layouts = zip(values, self.output_layouts, self.desired_output_layouts, strict=True)
        for value, now, then in layouts:
            if now is not None:
                value = _as_distributed(value, mesh, (now,), (then,))
                value = value.to_local() if self.use_local_output else value
            spread.append(value)
        return spread[0] if len(spread) == 1 else tuple(spread)

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        module.register_forward_hook(lambda _, inputs, out: self._outputs(out, device_mesh))
        return module


class PrepareModuleInputOutput(ParallelStyle):
    """Both of a module."""

    def __init__(
        self, *, use_local_input: bool = False, output_layouts: Any, desired_output_layouts: Any,
        use_local_output: bool = True, **inputs: Any,
    ) -> None:  # fmt: skip
        self.prepare_module_input = PrepareModuleInput(**inputs, use_local_output=use_local_input)
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts, desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )  # fmt: skip

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        self.prepare_module_input._apply(module, device_mesh)
        return self.prepare_module_output._apply(module, device_mesh)

    def __repr__(self) -> str:
        inputs = repr(self.prepare_module_input).partition("(")[2][:-1]
        outputs = repr(self.prepare_module_output).partition("(")[2]
        inputs = inputs.replace("use_local_output", "use_local_input")
        return f"PrepareModuleInputOutput({inputs}, {outputs}"
