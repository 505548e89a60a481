"""Owns the finder that serves `torch` and its submodules from mindtorch, in this process only.

`torch.nn` is the module `mindtorch.nn` under a second name, so that classes are the same objects
by both. Classes say that they live in torch, because libraries ask where a class comes from.
"""

from __future__ import annotations

import atexit
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from ...ops.namespaces import STANDING_IN
from .absent import absent, absent_module, report

if TYPE_CHECKING:
    from importlib.metadata import Distribution

# What torch's distribution brings, and torch_npu's, where it is here.
_HOMES = {
    "torch": "mindtorch",
    "functorch": "mindtorch._compat.functorch",
    "torch_npu": "mindtorch.torch_npu",
}
SITE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "site")
# Set by `mindtorch-npu exec`: where absent names are written; whether torch_npu is found.
ABSENT_VARIABLE = "MINDTORCH_ABSENT"
NPU_VARIABLE = "MINDTORCH_TORCH_NPU"


def _ours(name: str) -> str:
    """`torch.nn` → `mindtorch.nn`; `torch_npu.npu` is torch.npu."""
    name = "torch" + name[9:] if f"{name}.".startswith("torch_npu.npu.") else name
    top, _, rest = name.partition(".")
    return _HOMES[top] + ("." + rest if rest else "")


class Alias(Loader):
    """Gives the module of ours as torch's."""

    def __init__(self, ours: str):
        self.ours = ours
        self.spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.ours)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Undo what importing wrote into a module that was there before."""
        module.__spec__ = self.spec
        serve(module)


class Finder(MetaPathFinder):
    """Finds `torch` and all below it; and says that torch's distribution is installed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: Any = None
    ) -> ModuleSpec | None:
        top = fullname.partition(".")[0]
        if top == "mindtorch":
            return _public(fullname, path)
        if top not in _HOMES or (top == "torch_npu" and os.environ.get(NPU_VARIABLE) != "1"):
            return None
        ours = _ours(fullname)
        theirs = _spec(ours)
        if theirs is None:
            if _importing():
                raise absent_module(fullname)
            return None
        package = theirs.submodule_search_locations is not None
        spec = ModuleSpec(fullname, Alias(ours), origin=theirs.origin, is_package=package)
        if package:
            spec.submodule_search_locations = list(theirs.submodule_search_locations or ())
        return spec

    @staticmethod
    def find_distributions(context: Any = None) -> Iterable[Distribution]:
        """torch's metadata: a version, and what it brings to import."""
        if context is not None and context.name not in (None, "torch"):
            return ()
        from importlib.metadata import DistributionFinder, MetadataPathFinder  # who asks has it

        search = MetadataPathFinder.find_distributions
        return search(DistributionFinder.Context(name="torch", path=[SITE]))


def _public(fullname: str, path: Sequence[str] | None) -> ModuleSpec | None:
    """A module of ours by a name that torch has, which answers as torch's once it is loaded."""
    spec = PathFinder.find_spec(fullname, path)
    if spec is None or spec.loader is None or not spec.origin:
        return spec
    if "._" not in fullname.replace("._dynamo", "") and not fullname.startswith("mindtorch.ops"):
        run = spec.loader.exec_module

        def load(module: ModuleType) -> None:
            run(module)
            if "_served" in module.__dict__:  # by another module, before it was whole
                _adopt_all(module.__dict__)
            else:
                serve(module)

        vars(spec.loader)["exec_module"] = load
    return spec


def _spec(ours: str) -> Any:
    try:
        return importlib.util.find_spec(ours)
    except (ModuleNotFoundError, ValueError):
        return None


def _importing() -> bool:
    """Whether an import asks: `importlib.util.find_spec` is answered with None instead."""
    frame: Any = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
        if frame.f_code.co_name in ("_find_and_load", "_find_and_load_unlocked"):
            return True
        frame = frame.f_back
    return False


def installed() -> bool:
    """Whether torch is served from here."""
    return any(isinstance(finder, Finder) for finder in sys.meta_path)


def install() -> None:
    """Serve torch from mindtorch; RuntimeError where another torch has been imported already."""
    there = sys.modules.get("torch")
    ours = importlib.import_module("mindtorch")
    if there is not None and there is not ours and not _is_door(there):
        raise RuntimeError(
            f"mindtorch.as_torch: torch has been imported already, from {there.__file__};"
            " import mindtorch.as_torch first"
        )
    if not installed():
        sys.meta_path.insert(0, Finder())
        if where := os.environ.get(ABSENT_VARIABLE):
            atexit.register(report, where)
    sys.modules["torch"] = ours
    ours.__dict__["__name__"] = "torch"
    ours.__dict__["torch"] = ours
    STANDING_IN["torchvision"] = _torchvision
    serve(ours)


def _torchvision() -> None:
    importlib.import_module("mindtorch._compat.torch_shim.torchvision").declare_all()


def _is_door(module: ModuleType) -> bool:
    return SITE in str(getattr(module, "__file__", ""))


def serve(module: ModuleType) -> None:
    """Let a module of ours answer as torch's: absent names are explained, classes are torch's."""
    scope = module.__dict__
    if "_served" not in scope:
        scope["_served"] = True
        ours = module.__spec__.name if module.__spec__ is not None else module.__name__
        public_name = "torch" + ours.removeprefix("mindtorch")
        scope["__getattr__"] = _answering(module, ours, public_name, scope.get("__getattr__"))
        _adopt_all(scope)


def _adopt_all(scope: dict[str, Any]) -> None:
    for value in list(scope.values()):
        _adopt(value)


def _adopt(value: Any) -> Any:
    """What a served module gives out, as torch's: a class, or a public module below it."""
    if isinstance(value, type | FunctionType):
        return _move(value)
    public = isinstance(value, ModuleType) and "._" not in value.__name__
    if public and value.__name__.startswith("mindtorch."):
        sys.modules.setdefault(value.__name__.replace("mindtorch", "torch", 1), value)
        serve(value)
    return value


def _answering(
    module: ModuleType, ours: str, public_name: str, module_getattr: Callable[[str], Any] | None
) -> Callable[[str], Any]:
    def __getattr__(name: str) -> Any:  # noqa: N807 - a module's hook
        if module_getattr is not None:
            try:
                value = module_getattr(name)
            except AttributeError:
                pass
            else:
                return _adopt(value)
        package = not name.startswith("__") and hasattr(module, "__path__")
        if package and _spec(f"{ours}.{name}") is not None:
            return importlib.import_module(f"{public_name}.{name}")
        for home in _HOMES_OF_TORCH.get(public_name.partition(".")[2], "").split():
            value = vars(sys.modules.get(f"mindtorch.{home}", module)).get(name)
            if getattr(value, "__module__", "") == public_name:  # which says that it is here
                return value
        raise absent(module, public_name, name)

    return __getattr__


# Where torch's classes and functions say that they are, if not where ours are.
_TOP = ("Tensor", "dtype", "device", "Size", "Generator", "finfo", "iinfo", "memory_format",
        "layout")  # fmt: skip
_HOMES_OF_TORCH = {
    "": "_autograd.grad_mode _compat.checks _compat.warn_once _functional.queries"
    " _functional.settings _quantized _tensor.device _tensor.dtype amp.switches sparse._build",
    "_linalg_utils": "_compat.legacy",
    "_lobpcg": "_functional.lobpcg",
    "_ops": "ops.namespaces",
    "_tensor_str": "_functional.printing",
    "autograd": "_autograd.surface",
    "autograd.function": "_autograd.function",
    "autograd.functional": "_autograd.functional",
    "autograd.graph": "_autograd.graph",
    "autograd.profiler_util": "profiler._events",
    "distributed": "distributed._mesh distributed._store",
    "distributed.distributed_c10d": "distributed distributed._calls distributed._coalesced"
    " distributed._points distributed._subgroups",
    "func": "func.batches func.derivatives func.functions func.jacobians func.rearrangement",
    "fx._symbolic_trace": "fx.tracer",
    "library": "library.custom library.registration",
    "masked._ops": "masked.normalizations masked.reductions",
    "nested": "nested._build",
    "overrides": "_dispatch.overridable _dispatch.overrides",
    "random": "_random.generator",
    "serialization": "serialization._locations serialization._options",
    "utils._python_dispatch": "_dispatch.dispatch_modes",
    "utils.checkpoint": "utils._selective",
    "utils.data._utils.collate": "utils.data._collate",
    "utils.data._utils.worker": "utils.data._worker",
    "utils.dlpack": "_functional.dlpack",
}
_PLACES = {
    f"mindtorch.{home}": f"torch.{place}".rstrip(".")
    for place, homes in _HOMES_OF_TORCH.items()
    for home in homes.split()
}


def _move(value: type | FunctionType) -> type | FunctionType:
    home = getattr(value, "__module__", None) or ""
    if home.startswith("mindtorch"):
        name = "torch" if value.__name__ in _TOP else home.replace("mindtorch", "torch", 1)
        hidden = value.__name__.startswith("_")  # torch's module of the place lacks it
        value.__module__ = name if hidden else _PLACES.get(home, name)
        # typing.get_type_hints and pickle look the module up by this name.
        if name not in sys.modules and home in sys.modules:
            sys.modules[name] = sys.modules[home]
            serve(sys.modules[home])
    return value
