"""Owns modules whose forward is a graph's code, written anew when the graph changes."""

from __future__ import annotations

import copy
import linecache
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from traceback import FrameSummary, extract_tb, format_exc
from types import ModuleType
from typing import Any

from .._tensor.tensor import Tensor
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from .graph import Graph, PythonCode, _own_globals, _PyTreeCodeGen
from .readable import readable
from .tracer import Tracer

__all__ = ["GraphModule", "reduce_graph_module"]

_PACKAGE = str(Path(__file__).parents[1])
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_GENERATED = "<eval_with_key>"
_COUNT = count()


def _forward_from_src(
    src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None
) -> Callable[..., Any]:
    """The function of generated code; its text is shown in tracebacks, which say of what it is."""
    name = f"{_GENERATED}.{next(_COUNT)}"
    if co_fields:
        name += " from {co_filename}:{co_firstlineno} in {co_name}".format(**co_fields)
    linecache.cache[name] = (len(src), None, src.splitlines(keepends=True), name)
    scope = {**_own_globals(), **globals}
    exec(compile(src, name, "exec"), scope)
    forward: Callable[..., Any] = scope["forward"]
    return forward


def _generated_frame(error: Exception) -> FrameSummary | None:
    """Where generated code called what raised; None where that is further code in Python."""
    frames = extract_tb(error.__traceback__)
    at = next((i for i in reversed(range(len(frames))) if _GENERATED in frames[i].filename), None)
    if at is None or not all(_PACKAGE in f.filename for f in frames[at + 1 :]):
        return None
    return None if any("/nn/modules/" in f.filename for f in frames[at + 1 :]) else frames[at]


def _explanation(frame: FrameSummary) -> str:
    """The error that is being handled, and the lines of generated code around it."""
    at = frame.lineno or 0
    lines = linecache.getlines(frame.filename)
    marker = "~" * (len(frame.line or "") + 3) + " <--- HERE"
    return "\n".join([
        format_exc(),
        f"Call using an FX-traced Module, line {at} of the traced Module's generated forward"
        " function:",
        "".join(lines[at - 2 : at]), marker, "\n".join(lines[at : at + 2]),
    ])  # fmt: skip


def _reach(module: Module, path: list[str], make: bool) -> Module | None:
    """The module at a path; new ones are put where there are none, where `make`."""
    for part in path:
        inner = getattr(module, part, None)
        if inner is None and make:
            inner = Module()
            setattr(module, part, inner)
        if inner is None:
            return None
        module = inner
    return module


def _assign_attr(value: object, module: Module, target: str) -> None:
    """Put a value at a path; a tensor that is no parameter is a buffer."""
    *path, name = target.split(".")
    place = _reach(module, path, make=True)
    if place is None:
        raise AssertionError(target)
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        place.register_buffer(name, value)
    else:
        setattr(place, name, value)


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Let another module have what lies at a path."""
    *path, name = target.split(".")
    source = _reach(from_module, path, make=False)
    place = _reach(to_module, path, make=True)
    if source is None or place is None or source is place:
        return
    value = getattr(source, name)
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        place.register_buffer(name, value, name not in source._non_persistent_buffers_set)
    else:
        setattr(place, name, value)


class _CodeOnlyModule(Module):
    """What a saved graph module holds, without its graph."""

    def __init__(self, body: dict[str, Any]):
        super().__init__()
        self.__dict__ = body


def reduce_graph_module(body: dict[str, Any], import_block: str) -> Module:
    """A saved graph module again: its code is traced."""
    forward = _forward_from_src(import_block + body["_code"], body.pop("_code_globals", {}))
    specs: dict[str, Any] = {k: body[k] for k in ("_in_spec", "_out_spec") if k in body}
    code_module = _CodeOnlyModule(body)
    type(code_module).forward = forward

    class KeepModules(Tracer):
        """Each module is one node, as it was."""

        def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
            return True

    graph = KeepModules().trace(code_module)
    loaded = GraphModule(code_module, graph)
    loaded.__dict__.update(specs)
    for name, value in body.items():
        if name not in loaded.__dict__:
            loaded.__dict__[name] = value
    return loaded


# The lines of code that give what all generated code may use.
_USUAL = (
    "from math import inf", "from math import nan", "import torch", "NoneType = type(None)",
    "from torch import device", "import torch.fx._pytree as fx_pytree",
    "import torch.utils._pytree as pytree",
)  # fmt: skip


def _import_of(name: str, value: object, importer: Any) -> str:
    """The line of code that gives another global."""
    if isinstance(value, ModuleType):
        return f"import {value.__name__.replace('mindtorch', 'torch', 1)} as {name}"
    module, path = importer.get_name(value)
    return f"from {module} import {path}" + f" as {name}" * (name != path)


def _from_package(importer: Any, body: dict[str, Any], name: str) -> Module:
    """A packed graph module again."""
    body["_code_globals"] = dict(vars(importer.import_module(name)))
    cls_name = body.pop("_graphmodule_cls_name")
    loaded = reduce_graph_module(body, "")
    type(loaded).__name__ = cls_name
    return loaded


class GraphModule(Module):
    """A module of a graph: it has what the graph's nodes name of `root`, a module or a dict."""

    _code: str
    _graph: Graph

    def __new__(cls, *args: object, **kwargs: object) -> GraphModule:
        # Each has a class of its own, since forward is written per graph.
        for base in cls.__mro__:
            if "__graph_class__" not in base.__dict__:
                cls = base
                break
        namespace = {
            "__graph_class__": True, "__module__": cls.__module__,
            "__qualname__": "GraphModule.__new__.<locals>.GraphModuleImpl",
        }  # fmt: skip
        return super().__new__(type("GraphModuleImpl", (cls,), namespace))

    def __init__(self, root: object, graph: Graph, class_name: str = "GraphModule"):
        super().__init__()
        self.__class__.__name__ = class_name
        reading = [n for n in graph.nodes if n.op in ("get_attr", "call_module")]
        named = [str(n.target) for n in reading]
        if isinstance(root, Module):
            if hasattr(root, "training"):
                self.training = root.training
            for target in named:
                _copy_attr(root, self, target)
        elif isinstance(root, dict):
            for node in reading:
                if node.target not in root:
                    raise RuntimeError(
                        f"Node {node} referenced target {node.target} but that target was not"
                        " provided in ``root``!"
                    )
            for target in sorted(dict.fromkeys(named), key=lambda t: t.count(".")):
                _assign_attr(root[target], self, target)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self.graph = graph
        self._tracer_cls = None
        tracer = graph._tracer_cls
        if tracer is not None and "<locals>" not in tracer.__qualname__:
            self._tracer_cls = tracer
        self.meta: dict[str, Any] = {}

    @property
    def graph(self) -> Graph:
        """The nodes; after a change to them, `recompile`."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self.__dict__["_graph"] = g
        g.owning_module = self
        self.recompile()

    def __setattr__(self, name: str, value: object) -> None:
        if name == "graph":
            object.__setattr__(self, name, value)  # the property's
        else:
            super().__setattr__(name, value)

    @property
    def code(self) -> str:
        """The text of forward."""
        if not hasattr(self, "_code"):
            raise RuntimeError("Code has not been generated! Please report a bug to PyTorch")
        return self._code

    def recompile(self) -> PythonCode:
        """Write forward from the graph."""
        codegen = self._graph._codegen
        if isinstance(codegen, _PyTreeCodeGen):
            self.__dict__["_in_spec"] = codegen.pytree_info.in_spec
            self.__dict__["_out_spec"] = codegen.pytree_info.out_spec
        python_code = self._graph.python_code(root_module="self")
        self.__dict__["_code"] = python_code.src
        self.__dict__["_code_globals"] = python_code.globals
        self.__dict__["_lineno_map"] = python_code._lineno_map
        self.__dict__["_prologue_start"] = python_code._prologue_start
        type(self).forward = _forward_from_src(
            python_code.src, python_code.globals, self._graph._co_fields
        )
        return python_code

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().__call__(*args, **kwargs)
        except Exception as error:
            frame = _generated_frame(error)
            if frame is not None:
                print(_explanation(frame), file=sys.stderr)
            raise

    def _replicate_for_data_parallel(self) -> GraphModule:
        return copy.copy(self)

    def add_submodule(self, target: str, m: Module) -> bool:
        """Put a module at a path; False where something else is in the way."""
        *path, name = target.split(".")
        place: Any = self
        for part in path:
            inner = getattr(place, part, None)
            if inner is None:
                inner = Module()
                setattr(place, part, inner)
            if not isinstance(inner, Module):
                return False
            place = inner
        place.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Take the module at a path away; False where there is none."""
        *path, name = target.split(".")
        place = _reach(self, path, make=False)
        if not isinstance(place, Module) or not isinstance(getattr(place, name, None), Module):
            return False
        delattr(place, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Take away modules that no node calls or reads, nor anything in them."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = str(node.target).split(".")
                used.update(".".join(parts[: i + 1]) for i in range(len(parts)))
                module = _reach(self, parts, make=False) if node.op == "call_module" else None
                if module is not None:
                    used.update(f"{node.target}.{n}" for n, _ in module.named_modules() if n)
        for name in [n for n, _ in self.named_modules() if n and n not in used]:
            self.delete_submodule(name)

    def print_readable(
        self, print_output: bool = True, include_stride: bool = False,
        include_device: bool = False, colored: bool = False, **_: object,
    ) -> str:  # fmt: skip
        """The code as a class; it is printed too."""
        text = readable(self, self._get_name(), lambda sizes: str(sizes[0])) + "\n"
        if print_output:
            print(text)
        return text

    def to_folder(self, folder: Any, module_name: str = "FxModule") -> None:
        """Write the code and the modules, as files that make the module again."""
        from ..serialization import save

        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        save(self.state_dict(), place / "state_dict.pt")
        children = dict(self.named_children())
        save(children, place / "children.pt")
        forward = "".join("    " + line for line in self._code.splitlines(keepends=True))
        text = (
            "import torch\nfrom torch import device, inf, nan\n\n\n"
            f"class {module_name}(torch.nn.Module):\n"
            "    def __init__(self):\n        super().__init__()\n"
            f"        children = torch.load(r'{place / 'children.pt'}', weights_only=False)\n"
            "        for name, child in children.items():\n"
            "            self.add_module(name, child)\n"
            f"        state = torch.load(r'{place / 'state_dict.pt'}')\n"
            "        for name, value in state.items():\n"
            "            if '.' not in name:\n"
            "                self.register_buffer(name, value)\n"
            f"{forward}"
        )
        (place / "module.py").write_text(text, encoding="utf-8")
        (place / "__init__.py").write_text("from .module import *\n", encoding="utf-8")

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        body = {k: v for k, v in self.__dict__.items() if k not in ("_graph", "_code_globals")}
        copied: GraphModule = GraphModule.__new__(type(self).__mro__[1])
        memo[id(self)] = copied
        code_module = _CodeOnlyModule(copy.deepcopy(body, memo))
        GraphModule.__init__(copied, code_module, copy.deepcopy(self._graph), type(self).__name__)
        for name, value in code_module.__dict__.items():
            if name not in ("_parameters", "_buffers", "_modules") and name[:5] != "_code":
                copied.__dict__[name] = value
        for name in ("_parameters", "_buffers", "_modules"):
            for key, value in code_module.__dict__[name].items():
                copied.__dict__[name].setdefault(key, value)
        return copied

    def __copy__(self) -> GraphModule:
        copied = GraphModule(self, self.graph)
        copied.meta = self.meta
        return copied

    def __reduce__(self) -> Any:
        body = {k: v for k, v in self.__dict__.items() if k != "_graph"}
        return reduce_graph_module, (body, "")

    def __reduce_package__(self, exporter: Any) -> Any:
        """What a package has of it: its members, and its code as a module of the package."""
        body = {k: v for k, v in self.__dict__.items() if k not in ("_graph", "_code_globals")}
        body["_graphmodule_cls_name"] = type(self).__name__
        name = f"fx-generated._{exporter.get_unique_id()}"
        names = {n: v for n, v in self._code_globals.items() if n not in _own_globals()}
        lines = {*_USUAL, *(_import_of(n, v, exporter.importer) for n, v in names.items())}
        block = "\n".join(sorted(lines)) + "\n"
        exporter.save_source_string(name, block + self._code)
        return _from_package, (body, name)

    def __str__(self) -> str:
        note = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__str__(), self._code, note])
