"""Owns what modules hand on to nodes for lowering: their settings and parameters as attributes."""

from __future__ import annotations

from ...nn.modules.module import Module
from ..graph_module import GraphModule

__all__ = [
    "default_matching", "extract_attrs_for_lowering", "lift_lowering_attrs_to_nodes",
]  # fmt: skip


def default_matching(name: str, target_version: int) -> str:
    """An attribute under its own name."""
    return name


_ATTRIBUTES = {
    "Linear": (1, "weight bias"),
    "Conv2d": (1, "weight bias kernel_size stride padding dilation groups padding_mode"),
    "BatchNorm2d": (2, "weight bias running_mean running_var eps"),
    "ReLU": (1, "inplace"), "MaxPool2d": (
        1, "kernel_size stride padding dilation return_indices ceil_mode"),
    "AdaptiveAvgPool2d": (1, "output_size"),
}  # fmt: skip


def extract_attrs_for_lowering(mod: Module) -> dict[str, object]:
    """A module's class, settings and parameters by name; RuntimeError for another version."""
    attributes: dict[str, object] = {"name": _name(type(mod))}
    if type(mod).__name__ not in _ATTRIBUTES:
        raise RuntimeError(
            f"{attributes['name']} is not in the module_fetch_book yet, please add it to the"
            " module_fetch_book, open an issue and @842974287 or report a bug to AIACC team"
            " directly."
        )
    version, names = _ATTRIBUTES[type(mod).__name__]
    if version < getattr(mod, "_version", 1):
        raise RuntimeError(
            f"Fetcher version {version} try to fetch {type(mod)} version {mod._version},"
            " please upgrade the module_fetch_book, open an issue and @842974287 or report a bug"
            " to AIACC team directly."
        )
    for name in names.split():
        attributes[name] = getattr(mod, name)
    return attributes


def _name(cls: type) -> str:
    home = cls.__module__
    ours = home.partition(".")[0] == "mindtorch"
    return f"{'torch' + home.removeprefix('mindtorch') if ours else home}.{cls.__name__}"


def lift_lowering_attrs_to_nodes(fx_module: GraphModule) -> None:
    """Give nodes of modules the modules' settings, in `attrs_for_lowering`."""
    modules = dict(fx_module.named_modules())
    for node in fx_module.graph.nodes:
        if node.op == "call_module":
            module = modules[str(node.target)]
            if isinstance(module, GraphModule):
                lift_lowering_attrs_to_nodes(module)
            else:
                vars(node)["attrs_for_lowering"] = extract_attrs_for_lowering(module)
