"""Owns torch._logging's names: levels of the loggers under `torch`; no compiler tells anything."""

from __future__ import annotations

import logging
from functools import cache
from typing import Any

__all__ = ["getArtifactLogger", "set_logs", "warning_once"]

# Names of set_logs that take a level, and those that turn what a compiler would tell on.
_LOGS = """
    dynamo aot autograd dynamic inductor distributed c10d ddp fsdp dtensor onnx export
"""
_ARTIFACTS = """
    bytecode aot_graphs aot_joint_graph ddp_graphs graph graph_code graph_code_verbose graph_breaks
    side_effects graph_sizes guards recompiles recompiles_verbose trace_source trace_call
    trace_bytecode output_code kernel_code schedule perf_hints pre_grad_graphs post_grad_graphs
    ir_pre_fusion ir_post_fusion onnx_diagnostics fusion overlap cudagraphs sym_node
    compiled_autograd compiled_autograd_verbose cudagraph_static_inputs benchmarking autotuning
    incremental graph_region_expansion inductor_metrics hierarchical_compile compute_dependencies
    caching
"""
_LEVELS = (logging.CRITICAL, logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG, 0)


def set_logs(*, all: int | None = None, modules: dict[str, Any] | None = None, **what: Any) -> None:
    """Levels of loggers: of all of torch's, of `modules`; what a compiler would tell is ignored.

    TypeError for no log of torch, ValueError for no level, or for an artifact's that is no bool.
    """
    logs, artifacts = _LOGS.split(), _ARTIFACTS.split()
    for name, value in what.items():
        if name in artifacts and not isinstance(value, bool):
            raise ValueError(f"Expected bool to enable artifact {name}, received {value}")
        if name not in artifacts and name not in logs:
            raise TypeError(f"set_logs() got an unexpected keyword argument '{name}'")
    levels = {"torch": all, **{n: what.get(n) for n in logs}}
    for name, level in levels.items():
        if level is not None and level not in _LEVELS:
            valid = ",".join(map(str, _LEVELS))
            raise ValueError(
                f"Unrecognized log level for log {name}: {level}, valid level values are: {valid}"
            )
    for name, level in {"torch": all, **(modules or {})}.items():
        if level is not None:
            logging.getLogger(name).setLevel(level)


def getArtifactLogger(module_qname: str, artifact_name: str) -> logging.Logger:  # noqa: N802
    """The logger of what a compiler makes."""
    return logging.getLogger(f"{module_qname}.__{artifact_name}")


@cache
def warning_once(logger_obj: logging.Logger, *args: Any, **kwargs: Any) -> None:
    """A warning, the first time it is told."""
    logger_obj.warning(*args, **kwargs)
