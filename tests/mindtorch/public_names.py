"""Compares every public namespace of torch with mindtorch's, and writes the names to be refused.

    python -m tests.mindtorch.public_names            # what is absent, where `__all__` differs
    python -m tests.mindtorch.public_names --signatures
    python -m tests.mindtorch.public_names --write    # mindtorch/absent_modules.txt

A name is public where torch's `__all__` has it, or, without one, where it is defined.
"""

import argparse
import contextlib
import importlib
import inspect
import io
import pkgutil
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

import mindtorch
from mindtorch._compat import absent_modules
from mindtorch.ops.namespaces import _aten

FILE = Path(absent_modules.__file__).with_suffix(".txt")
# Modules that are private by place though not by name, or programs.
INTERNAL = (
    "torch.testing._internal", "torch.utils.tensorboard", "torch.utils.hipify", "torch.contrib",
    "torch.distributed.examples", "torch.distributed.elastic.metrics.static",
    "torch.distributed.flight_recorder", "torch.utils.benchmark.examples",
)  # fmt: skip
# Modules of torch that are private and that libraries import: transformers, accelerate, diffusers,
# lightning, kornia, tensordict, fastai, torch_geometric, ultralytics ask for these names.
ASKED_FOR = {
    "_inductor": "cudagraph_mark_step_begin list_mode_options",
    "_prims_common": "is_contiguous_or_false",
    "distributed._composable": "",
    "distributed._composable.fsdp": "FSDPModule fully_shard",
    "distributed._functional_collectives": "AsyncCollectiveTensor all_gather_tensor"
    " all_reduce all_to_all_single all_to_all_single_autograd permute_tensor wait_tensor",
    "distributed._tensor": "DTensor DeviceMesh Replicate Shard distribute_module distribute_tensor",
    "distributed.algorithms._checkpoint": "",
    "distributed.algorithms._checkpoint.checkpoint_wrapper": "CheckpointImpl CheckpointWrapper"
    " apply_activation_checkpointing checkpoint_wrapper offload_wrapper",
    "distributed.checkpoint.format_utils": "_EmptyStateDictLoadPlanner",
    "distributed.checkpoint.state_dict_loader": "_load_state_dict",
    "distributed.fsdp.wrap": "_or_policy",
    "distributed.utils": "_sync_module_states",
    "_subclasses.functional_tensor": "FunctionalTensor mb_unwrap_functional_tensor",
    "_subclasses.meta_utils": "MetaConverter",
    "_inductor.cpu_vec_isa": "pick_vec_isa",
    "_inductor.cpp_builder": "get_cpp_compiler",
    "_inductor.codecache": "extract_tensor_metadata_for_cache_key",
    "_inductor.exc": "InductorError",
    "_inductor.runtime": "",
    "_inductor.runtime.cache_dir_utils": "cache_dir",
    "nested._internal": "",
    "nested._internal.nested_tensor": "NestedTensor",
    "nested._internal.ops": "extract_kwargs",
}  # fmt: skip


def walk(package: ModuleType) -> Iterator[str]:
    """Names of torch's public modules, its own included."""
    yield package.__name__
    for info in pkgutil.iter_modules(getattr(package, "__path__", ()), package.__name__ + "."):
        private = any(part.startswith("_") for part in info.name.split("."))
        if (private and info.name != "torch.utils._pytree") or info.name.startswith(INTERNAL):
            continue
        try:
            module = importlib.import_module(info.name)
        except Exception:
            continue
        if isinstance(module, ModuleType):
            yield from walk(module)


def torchs_modules() -> list[str]:
    """Every public module of torch that imports here, without `torch.`."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = sorted({*walk(torch), "torch.special", "torch.linalg", "torch.fft"})
    return [name.removeprefix("torch").removeprefix(".") for name in names]


def of(library: ModuleType, name: str) -> Any:
    """A module of torch, or of mindtorch, by what follows `torch.`."""
    return importlib.import_module(f"{library.__name__}.{name}" if name else library.__name__)


def public(module: ModuleType) -> list[str]:
    """The public names of one of torch's modules."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return sorted(set(listed))
    own = module.__name__
    return sorted(
        name
        for name, value in vars(module).items()
        if name[0] != "_" and str(getattr(value, "__module__", own)).startswith(own)
        and not isinstance(value, ModuleType)
    )  # fmt: skip


def exported(module: ModuleType) -> list[str]:
    """The public names, with classes and functions of torch that the module imports."""
    imported = {
        name
        for name, value in vars(module).items()
        if name[0] != "_" and str(getattr(value, "__module__", "")).startswith("torch")
        and isinstance(value, type) | inspect.isroutine(value)
    }  # fmt: skip
    return sorted({*public(module), *imported})


def absent(name: str) -> list[str] | None:
    """Public names of torch's module that ours lacks; None without such a module here."""
    try:
        ours = of(mindtorch, name)
    except ModuleNotFoundError:
        return None
    return [n for n in public(of(torch, name)) if not hasattr(ours, n)]


def parameters(function: object) -> list[tuple[str, str, str]] | None:
    """Names, kinds and defaults; None where Python cannot tell. Objects show their class."""
    try:
        found = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    shown = (re.sub(r" at 0x\w+|mindtorch", "", repr(p.default)) for p in found)
    return [
        (p.name, p.kind.name, text.replace("torch", ""))
        for p, text in zip(found, shown, strict=True)
    ]


def other_signatures(name: str) -> Iterator[tuple[str, Any, Any]]:
    """Callables of a module whose arguments are named, or default, otherwise than torch's."""
    theirs, ours = of(torch, name), of(mindtorch, name)
    for n in public(theirs):
        there, here = getattr(theirs, n, None), getattr(ours, n, None)
        expected = parameters(there)
        if expected is not None and callable(here) and parameters(here) != expected:
            yield n, expected, parameters(here)


def write() -> None:
    """Write the names of modules that have no file here and a reason to be refused."""
    lines = [f"# Names of torch {torch.__version__.partition('+')[0]} by module, to be refused."
             " Written by tests/mindtorch/public_names.py --write."]  # fmt: skip
    names = {m: " ".join(callables(m)) for m in torchs_modules() if refused(m)}
    there = exported(torch.distributed)
    names["distributed"] = " ".join(n for n in there if n not in vars(mindtorch.distributed))
    names[""] = " ".join(n for n in public(torch) if not n.startswith("_") and not _is_here(n))
    unlisted = set(dir(mindtorch)) - set(torch.__all__)
    names["*"] = " ".join(sorted(n for n in unlisted if not n.startswith("_")))
    for module, more in ASKED_FOR.items():
        if has_file(module):
            continue
        names[module] = " ".join(sorted({*names.get(module, "").split(), *more.split()}))
    names["ops.aten"] = " ".join(sorted(n for n in operators() if _aten(n) is None))
    groups: dict[str, list[str]] = {}
    for module, text in sorted(names.items()):
        groups.setdefault(text, []).append(module)
    lines += [f"{' '.join(modules)}: {text}".rstrip() for text, modules in groups.items()]
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def callables(module: str) -> list[str]:
    """The exported names of classes and functions: what can be refused when it is called."""
    theirs = of(torch, module)
    values = ((name, getattr(theirs, name, None)) for name in exported(theirs))
    return [n for n, v in values if callable(v) and type(v).__module__ != "typing"]


def operators() -> set[str]:
    """Names of torch's operators."""
    names = (schema.name for schema in torch._C._jit_get_all_schemas())
    return {name.removeprefix("aten::") for name in names if name.startswith("aten::")}


def _is_here(name: str) -> bool:
    """Whether `torch.name` is more than refused here, or no function or class there."""
    there = getattr(torch, name)
    if not callable(there) or isinstance(there, torch.dtype):
        return True
    return name in vars(mindtorch) or name in dir(mindtorch)


def refused(module: str) -> bool:
    """Whether torch's module is refused as a whole: no file, a reason."""
    if (
        not module
        or module in absent_modules.SECOND
        or not module.startswith(tuple(absent_modules.WHY))
    ):
        return False
    return not has_file(module)


def has_file(module: str) -> bool:
    """Whether a module is a file of mindtorch, in its own folder or in that of `_compat`."""
    stems = [Path(folder).joinpath(*module.split(".")) for folder in mindtorch.__path__]
    return any(s.with_suffix(".py").exists() or (s / "__init__.py").exists() for s in stems)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--signatures", action="store_true")
    options = parser.parse_args()
    if options.write:
        write()
        return
    for module in torchs_modules():
        lacking = absent(module)
        if lacking is None:
            print(f"torch.{module}: no such module here")
        elif options.signatures:
            for name, theirs, ours in other_signatures(module):
                print(f"torch.{module}.{name}\n    torch {theirs}\n    here  {ours}")
        elif lacking:
            print(f"torch.{module}: {' '.join(lacking)}")


if __name__ == "__main__":
    main()
