"""torch.distributed.tensor.debug: CommDebugMode, which counts collectives of new tensors."""

from __future__ import annotations

from typing import Any

from ..._compat.refusals import refusals
from ...nn import Module
from ...nn.modules.module import register_module_forward_pre_hook
from ...ops.namespaces import OpOverloadPacket, namespace
from ...utils.module_tracker import ModuleTracker
from .. import _functional_collectives as _functional_collectives  # whose operators are counted
from .._counted import LISTENERS
from ._api import DTensor

__path__: list[str] = []  # what is below is in absent_modules.txt
__all__ = ["CommDebugMode"]
__getattr__ = refusals(
    "torch.distributed.tensor.debug", "it prints by the package rich", ("visualize_sharding",)
)


class CommDebugMode:
    """Counts what DTensors and functional collectives send while it is entered, and notes modules'
    parameters; operators by modules, and tables of them, are not kept."""

    def __init__(self) -> None:
        self.comm_counts: dict[OpOverloadPacket, int] = {}
        self._parameters: dict[str, dict[str, Any]] = {}
        self._tracker = ModuleTracker()

    def _count(self, name: str) -> None:
        packet = getattr(namespace("c10d_functional"), name)
        self.comm_counts[packet] = self.comm_counts.get(packet, 0) + 1

    def _note(self, module: Module, _: object) -> None:
        name = self._tracker._name(module)
        tensors = {n: p.data for n, p in module.named_parameters(recurse=False)}
        if tensors:
            self._parameters[name] = tensors

    def __enter__(self) -> CommDebugMode:
        self.comm_counts.clear()
        self._parameters.clear()
        self._hook = register_module_forward_pre_hook(self._note)
        LISTENERS.append(self._count)
        return self

    def __exit__(self, *_: object) -> None:
        LISTENERS.remove(self._count)
        self._hook.remove()

    def get_total_counts(self) -> int:
        """How many collectives there were."""
        return sum(self.comm_counts.values())

    def get_comm_counts(self) -> dict[OpOverloadPacket, int]:
        """How many of each, by operators of torch.ops.c10d_functional."""
        return dict(self.comm_counts)

    def get_parameter_info(self) -> dict[str, dict[str, Any]]:
        """Parameters by names, by the modules that ran."""
        return self._parameters

    def get_sharding_info(self) -> dict[str, Any]:
        """Placements of the parameters that are DTensors, by `module.parameter`."""
        return {
            f"{module}.{name}": p.placements
            for module, tensors in self._parameters.items()
            for name, p in tensors.items()
            if isinstance(p, DTensor)
        }
