"""Imports point one way, and importing mindtorch is quick and touches no device."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Layers of mindtorch, lowest first: a module may import its own layer and those below it.
LAYERS = (
    ("_dtype", "_device"),
    ("_geometry",),
    ("_storage",),
    ("_tensor",),
    ("ops",),
    ("_autograd", "_backends"),
    ("_dispatch",),
)


def modules(package):
    return sorted((ROOT / package).rglob("*.py"))


def imports(path):
    """Absolute names of what a file imports when it is loaded (not inside functions)."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in _outside_functions(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            stem = ".".join((*base, *((node.module or "").split(".") if node.module else ())))
            yield stem
            yield from (f"{stem}.{alias.name}" for alias in node.names)


def _outside_functions(tree):
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        yield node
        stack.extend(ast.iter_child_nodes(node))


@pytest.mark.parametrize("path", modules("mindtorch"), ids=lambda p: str(p.relative_to(ROOT)))
def test_only_the_npu_backend_imports_the_bindings(path):
    door = "mindtorch/_backends/npu/" in path.as_posix()
    wrong = [n for n in imports(path) if n.split(".")[0] == "aclnn_bindings" and not door]
    assert not wrong


@pytest.mark.parametrize("path", modules("mindtorch"), ids=lambda p: str(p.relative_to(ROOT)))
def test_mindtorch_never_imports_torch_or_the_command(path):
    wrong = [
        n
        for n in imports(path)
        if n.split(".")[0] in ("torch", "cli", "mindtorch_npu", "click", "rich")
    ]
    assert not wrong


@pytest.mark.parametrize("path", modules("aclnn_bindings"), ids=lambda p: str(p.relative_to(ROOT)))
def test_the_bindings_import_neither_mindtorch_nor_the_command(path):
    assert not [
        n for n in imports(path) if n.split(".")[0] in ("mindtorch", "cli", "mindtorch_npu")
    ]


def layer_of(name):
    part = name.split(".")[1] if name.startswith("mindtorch.") else None
    return next((i for i, names in enumerate(LAYERS) if part in names), None)


@pytest.mark.parametrize("path", modules("mindtorch"), ids=lambda p: str(p.relative_to(ROOT)))
def test_layers_of_mindtorch_import_downwards(path):
    own = layer_of(".".join(path.relative_to(ROOT).with_suffix("").parts))
    if own is None:
        return
    above = [n for n in imports(path) if (layer_of(n) or 0) > own]
    assert not above, f"{path.name} is in layer {LAYERS[own]} and imports {above}"


def test_importing_mindtorch_loads_no_device_library():
    code = (
        "import sys, mindtorch; "
        "bad = [m for m in sys.modules if m.split('.')[0] in ('aclnn_bindings', 'torch', 'rich', "
        "'click', 'cffi', '_cffi_backend', 'ml_dtypes')]; print(bad)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_importing_mindtorch_loads_no_row():
    code = "import sys, mindtorch; print([m for m in sys.modules if m.startswith('mindtorch.ops')])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize(
    "first", ["Tensor(2, 3)", "Tensor.add", "ones(2)", "autograd.grad", "strided"]
)
def test_any_first_use_loads_rows(first):
    code = f"import mindtorch as torch; torch.{first}; print((torch.ones(2) + 1).tolist())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "[2.0, 2.0]", done.stderr
