"""torch.fx.passes.utils: parts of graphs as modules."""

from .common import HolderModule, lift_subgraph_as_module

__all__ = ["HolderModule", "lift_subgraph_as_module"]
