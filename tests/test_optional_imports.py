"""The suite collects and passes where an optional oracle (torch and the like) is not installed."""

import ast
import sys
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
# Imported by tests, installed by neither the package nor its `test` extra.
OPTIONAL = {
    *("torch", "torch_npu", "torchvision", "torchmetrics", "transformers", "tensorflow", "jax"),
    *("ray", "expecttest", "triton", "mindspore", "atheris", "torch_geometric"),
}
MODULES = sorted(p for p in TESTS.rglob("test_*.py"))


def skipped_by(node):
    """Packages for which `pytest.importorskip` stands in a statement."""
    for call in (n for n in ast.walk(node) if isinstance(n, ast.Call)):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)
        if name == "importorskip" and call.args and isinstance(call.args[0], ast.Constant):
            yield str(call.args[0].value).split(".")[0]


def imported(node):
    """Dotted names that an import statement binds or reads."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []


def local_module(name, folder):
    """The file of a module of these tests, by its dotted name or from its own folder."""
    for base in (TESTS.parent, folder, TESTS / "cli" / "operators"):
        path = base.joinpath(*name.split(".")).with_suffix(".py")
        if path.is_file() and TESTS in path.parents:
            return path
    return None


@cache
def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def unguarded(path, guards=frozenset(), seen=frozenset()):
    """Imports of optional packages that run when a module is imported, with no guard before."""
    guards = set(guards)
    for node in parsed(path).body:
        guards |= set(skipped_by(node))
        for name in imported(node):
            if name.split(".")[0] in OPTIONAL - guards:
                yield f"{path.name}:{node.lineno} imports {name}"
            module = local_module(name, path.parent)
            if module and module not in seen:
                yield from unguarded(module, frozenset(guards), seen | {path, module})


def unguarded_functions(path):
    """Imports of optional packages in a function, with a guard neither there nor in the module."""
    tree = parsed(path)
    module = {name for node in tree.body for name in skipped_by(node)}
    for function in (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)):
        guards = module | set(skipped_by(function))
        for node in ast.walk(function):
            for name in imported(node):
                if name.split(".")[0] in OPTIONAL - guards:
                    yield f"{path.name}:{node.lineno} imports {name}"


def test_optional_packages_are_imported_behind_a_guard():
    assert not [
        early for path in MODULES for early in (*unguarded(path), *unguarded_functions(path))
    ]


def test_an_import_before_its_guard_is_refused(tmp_path):
    module = tmp_path / "test_early.py"
    module.write_text("import torch\nimport pytest\npytest.importorskip('torch')\n")
    assert list(unguarded(module)) == ["test_early.py:1 imports torch"]
    module = tmp_path / "test_guarded.py"
    module.write_text("import pytest\ntorch = pytest.importorskip('torch')\nimport torch.fx\n")
    assert not list(unguarded(module))
    module = tmp_path / "test_inside.py"
    module.write_text("def test_it():\n    import torch\n")
    assert list(unguarded_functions(module)) == ["test_inside.py:2 imports torch"]


def test_optional_packages_are_not_among_the_dependencies():
    tomllib = pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")
    project = tomllib.loads((TESTS.parent / "pyproject.toml").read_text())["project"]
    required = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    names = {r.split(">")[0].split(";")[0].strip() for r in required}
    assert not OPTIONAL & names
