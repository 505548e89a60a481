"""Owns torch's modules that have no file here: second names of modules, and those to be refused.

`mindtorch.amp.autocast_mode` is found where `mindtorch.amp` has the names; `mindtorch.fx.config`
has the names that torch has there, and a call of one says why it is refused.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_ROOT = "mindtorch"

# Modules that are other modules' names again: torch's place → where it is here.
SECOND: dict[str, str] = {
    "_C._functorch": "func._levels",
    "_tensor_str": "_functional.printing",
    "amp.autocast_mode": "amp",
    "_higher_order_ops.cond": "_higher_order_ops.control",
    "_higher_order_ops.map": "_higher_order_ops.control",
    "_higher_order_ops.scan": "_higher_order_ops.control",
    "_higher_order_ops.while_loop": "_higher_order_ops.control",
    "accelerator.memory": "accelerator",
    "autograd.profiler_util": "autograd.profiler",
    "backends.mkl": "backends",
    "backends.mkldnn": "backends",
    "backends.nnpack": "backends",
    "backends.openmp": "backends",
    "backends.opt_einsum": "backends",
    "backends.quantized": "backends",
    "cpu.amp.autocast_mode": "cpu.amp",
    "cpu.amp.grad_scaler": "cpu.amp",
    "cuda.amp.autocast_mode": "cuda.amp",
    "cuda.amp.common": "cuda.amp",
    "cuda.amp.grad_scaler": "cuda.amp",
    "cuda.graphs": "cuda",
    "cuda.memory": "cuda",
    "cuda.random": "cuda",
    "cuda.streams": "cuda",
    "distributed._tensor": "distributed.tensor",
    "distributed.constants": "distributed",
    "distributed.distributed_c10d": "distributed",
    "distributed.pipelining.stage": "distributed.pipelining.schedules",
    "distributed.rpc.api": "distributed.rpc",
    "distributed.tensor.device_mesh": "distributed.device_mesh",
    "nn.modules.channelshuffle": "nn.modules.pixelshuffle",
    "signal.windows.windows": "signal.windows",
    "utils.benchmark.utils": "utils.benchmark",
    "utils.benchmark.utils.common": "utils.benchmark",
    "utils.benchmark.utils.compare": "utils.benchmark",
    "utils.benchmark.utils.fuzzer": "utils.benchmark",
    "utils.benchmark.utils.sparse_fuzzer": "utils.benchmark",
    "utils.benchmark.utils.timer": "utils.benchmark",
    "utils.benchmark.utils.valgrind_wrapper": "utils.benchmark",
    "utils.benchmark.utils.valgrind_wrapper.timer_interface": "utils.benchmark",
    "autograd.profiler_legacy": "autograd.profiler",
    "nn.modules.linear_cross_entropy": "nn.modules.loss",
    "nn.modules.linear_cross_entropy_options": "nn.modules.loss",
    "sparse.semi_structured": "sparse",
    "utils.backend_registration": "utils",
    "xpu.memory": "xpu",
    "xpu.random": "xpu",
    "xpu.streams": "xpu",
}
SECOND |= {f"nn.{name}": f"ao.nn.{name}" for name in (
    "intrinsic", "intrinsic.modules", "intrinsic.modules.fused", "intrinsic.qat",
    "intrinsic.qat.modules", "intrinsic.quantized", "intrinsic.quantized.modules", "qat",
    "qat.modules", "qat.modules.conv", "qat.modules.linear", "quantized", "quantized.dynamic",
    "quantized.dynamic.modules", "quantized.dynamic.modules.linear",
    "quantized.dynamic.modules.rnn", "quantized.modules", "quantized.modules.conv",
    "quantized.modules.functional_modules", "quantized.modules.linear",
    "quantized.modules.utils",
)}  # fmt: skip
SECOND |= {f"quantization.{name}": f"ao.quantization.{name}" for name in (
    "fake_quantize", "fuse_modules", "fuser_method_mappings", "observer", "qconfig",
    "quantization_mappings", "quantize", "quantize_fx", "stubs", "utils",
)}  # fmt: skip

SECOND |= {f"utils.data.datapipes.iter.{name}": "utils.data.datapipes.iter" for name in (
    "callable", "combinatorics", "combining", "filelister", "fileopener", "grouping", "selecting",
    "sharding", "streamreader", "utils",
)}  # fmt: skip
SECOND |= {f"utils.data.datapipes.map.{name}": "utils.data.datapipes.map" for name in (
    "callable", "combinatorics", "combining", "grouping", "utils",
)}  # fmt: skip

# Why the names of modules that start like this are refused; the longest start counts.
WHY = {
    "_inductor": "mindtorch has no compiler",
    "_subclasses": "mindtorch has no fake tensors; the meta device computes shapes",
    "ao": "mindtorch has quantisation of modules and of graphs of fx, not this",
    "_prims_common": "mindtorch has no primitives of a compiler",
    "cuda": "mindtorch has no CUDA device",
    "distributed": "mindtorch has process groups and DistributedDataParallel, not this",
    "export": "mindtorch runs eagerly and exports no graphs",
    "fx": "mindtorch has graphs of functions and modules, not this",
    "jit": "mindtorch compiles nothing",
    "masked": "mindtorch has functions of torch.masked, not tensors with masks",
    "mtia": "mindtorch has no MTIA device",
    "nativert": "mindtorch runs eagerly",
    "nested": "mindtorch has no nested tensors",
    "nn.cpp": "mindtorch has no modules of C++",
    "nn.intrinsic": "mindtorch has no quantised modules",
    "nn.qat": "mindtorch has no quantised modules",
    "nn.quantizable": "mindtorch has no quantised modules",
    "nn.quantized": "mindtorch has no quantised modules",
    "nn.parallel.comm": "one process drives one device here; torch.distributed uses several",
    "numa": "mindtorch binds no processes to memory",
    "onnx": "mindtorch exports no graphs",
    "quantization": "mindtorch has no quantised modules",
    "utils.bundled_inputs": "mindtorch's scripts carry no inputs",
    "utils.cpp_backtrace": "mindtorch knows no stack of C++",
    "utils.data": "mindtorch has DataLoader and pipes of values, not this",
    "utils.mkldnn": "mindtorch has no tensors in oneDNN's layout",
}


@cache
def refused_names() -> dict[str, tuple[str, ...]]:
    """Module → names of torch's there; read when a module without a file is first asked for."""
    with open(
        os.path.join(os.path.dirname(__file__), "absent_modules.txt"), encoding="utf-8"
    ) as file:
        lines = [line.partition(":") for line in file if not line.startswith("#")]
    return {m: tuple(names.split()) for modules, _, names in lines for m in modules.split(" ")}


def reason(name: str) -> str:
    """Why module `name` (without torch's) is refused."""
    return WHY[max((start for start in WHY if name.startswith(start)), key=len)]


# Why names of torch itself are refused: the first whose pattern is found counts.
WHY_NAMES = (
    (r"^(cudnn|miopen|mkldnn|fbgemm)_", "mindtorch calls ACLNN or numpy, not that library"),
    (r"quant", "mindtorch has no quantised operators"),
    (r"^batch_norm_", "mindtorch's batch norm is one operator"),
    (r"xla|ipu|vulkan", "mindtorch has no such device"),
    (r"^sym_", "mindtorch traces nothing"),
    (r"^[A-Z]|parse|ir_module|type", "mindtorch compiles nothing"),
    (r"", "mindtorch does not have it"),
)


def refused_name(name: str) -> Any:
    """`torch.name` to be refused; AttributeError for what torch does not have."""
    if name not in refused_names()[""]:
        raise AttributeError(f"module 'mindtorch' has no attribute '{name}'")
    import re

    from .refusals import refused

    return refused(
        f"torch.{name}", next(why for pattern, why in WHY_NAMES if re.search(pattern, name))
    )


def refused_operator(name: str) -> Callable[..., Any] | None:
    """`torch.ops.aten.name` to be refused; None for what is no operator of torch."""
    if name not in refused_names()["ops.aten"]:
        return None
    from .refusals import refused

    function: Callable[..., Any] = refused(f"torch.ops.aten.{name}", "mindtorch has no such row")
    return function


def _is_package(name: str) -> bool:
    tables = (SECOND, refused_names())
    return any(other.startswith(name + ".") for table in tables for other in table)


def _from_second(name: str) -> Callable[[str], Any]:
    home = importlib.import_module(f"{_ROOT}.{SECOND[name]}")
    inner = vars(home).get(name.rpartition(".")[2], home)  # `backends.mkl` is an object there
    if isinstance(inner, ModuleType):
        inner = home

    def find(attribute: str) -> Any:
        source = home if attribute.startswith("__") else inner
        try:
            return getattr(source, attribute)
        except AttributeError:
            if source is home:
                raise
            return getattr(home, attribute)

    return find


def _from_refused(name: str) -> Callable[[str], Any]:
    from .refusals import refusals

    refuse = refusals(f"torch.{name}", reason(name), refused_names()[name])

    def find(attribute: str) -> Any:
        if f"{name}.{attribute}" in refused_names():
            return importlib.import_module(f"{_ROOT}.{name}.{attribute}")
        return refuse(attribute)

    return find


class AbsentModules:
    """Finds what the tables name, after all that has a file."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: object = None
    ) -> ModuleSpec | None:
        top, _, name = fullname.partition(".")
        if top != _ROOT or not name or not (name in SECOND or name in refused_names()):
            return None
        loader: Any = self  # a Loader by what it has: importlib.abc costs an import milliseconds
        return ModuleSpec(fullname, loader, is_package=_is_package(name))

    def create_module(self, spec: ModuleSpec) -> None:
        """Python's own kind of module."""

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its names, by asking where they are."""
        name = module.__name__.partition(".")[2]
        find = _from_second(name) if name in SECOND else _from_refused(name)
        names = refused_names().get(name, ()) if name not in SECOND else ()
        module.__dict__["__getattr__"] = find
        module.__dict__["__dir__"] = lambda: sorted({*module.__dict__, *names})


def install() -> None:
    """Ask the tables for modules of this package that have no file."""
    if not any(isinstance(finder, AbsentModules) for finder in sys.meta_path):
        sys.meta_path.append(AbsentModules())
