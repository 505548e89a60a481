"""Imports point one way, and importing mindtorch is quick and touches no device."""

import ast
import functools
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Floors of each package, lowest first: a module imports its own floor and those below it, inside
# functions too. What stands on no floor (torch's public modules) may import any. Of what is there
# for torch's programs (`_compat`), tables and texts stand where they are read; the rest is on top.
FLOORS = {
    "mindtorch": (
        (
            "_compat.refusals",
            "_compat.absent_modules",
            "_compat.class_names",
            "_compat.method_names",
        ),
        ("_compat.invalid_arguments",),
        ("_tensor",),
        ("ops", "_compat.unsupported_dtypes"),
        ("_compat.argument_parser", "_compat.missing_args"),
        ("_compat.signatures", "_compat.failed_calls"),
        ("_compat.argument_errors",),
        ("_autograd", "_backends"),
        ("_dispatch", "_compat.deprecated_signatures"),
        ("_functional", "_compat.aliases", "_compat.checks", "_compat.legacy"),
        ("_random",),
    ),
    "aclnn_bindings": (
        ("errors",),
        ("interface",),
        ("install",),
        ("runtime",),
        ("call",),
        ("cann",),
        ("diagnose",),
    ),
}
# The judge of numbers knows no tensor library.
JUDGE = "cli.judge"


def modules(package):
    return sorted((ROOT / package).rglob("*.py"))


def name_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def imports(path):
    """Absolute names of what a file imports, inside functions and for types only too."""
    return tuple(_imports(path))


def _imports(path):
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            stem = ".".join((*base, *((node.module or "").split(".") if node.module else ())))
            yield stem
            yield from (f"{stem}.{alias.name}" for alias in node.names)


def importers(package, *barred):
    """Files of a package that import from one of the barred ones."""
    return {
        str(path.relative_to(ROOT))
        for path in modules(package)
        if any(name.split(".")[0] in barred for name in imports(path))
    }


def test_only_the_npu_backend_imports_the_bindings():
    wrong = importers("mindtorch", "aclnn_bindings")
    assert not {path for path in wrong if not path.startswith("mindtorch/_backends/npu/")}


def test_mindtorch_never_imports_torch_or_the_command():
    assert not importers("mindtorch", "torch", "cli", "mindtorch_npu", "click", "rich")


def test_the_bindings_import_neither_mindtorch_nor_the_command():
    assert not importers("aclnn_bindings", "mindtorch", "cli", "mindtorch_npu")


def floor_of(name):
    """The floor of a module, by the longest of its names that stands on one."""
    package, _, rest = name.partition(".")
    floors = {room: i for i, rooms in enumerate(FLOORS.get(package, ())) for room in rooms}
    while rest and rest not in floors:
        rest = rest.rpartition(".")[0]
    return floors.get(rest)


@pytest.mark.parametrize("package", FLOORS)
def test_floors_import_downwards_inside_functions_too(package):
    above = [
        f"{name_of(path)} -> {name}"
        for path in modules(package)
        if (own := floor_of(name_of(path))) is not None
        for name in imports(path)
        if name.startswith(package) and (floor_of(name) or 0) > own
    ]
    assert not above


def test_every_room_named_in_the_floors_is_there():
    for package, floors in FLOORS.items():
        for room in (room for rooms in floors for room in rooms):
            place = ROOT.joinpath(package, *room.split("."))
            there = place.is_dir() or place.with_suffix(".py").is_file()
            assert there, f"{package}/{room}"


def test_the_judge_imports_numbers_alone():
    allowed = {"numpy", "scipy", "ml_dtypes", "tomli", *sys.stdlib_module_names}
    wrong = [
        f"{path.name} -> {name}"
        for path in modules("cli/judge")
        for name in imports(path)
        if name.split(".")[0] not in allowed and not name.startswith(JUDGE)
    ]
    assert not wrong


def test_the_command_uses_public_names_of_mindtorch():
    """The few exceptions derive operators from rows: they ask how the npu backend binds a call."""
    private = [
        (path.relative_to(ROOT).as_posix(), name)
        for path in modules("cli")
        for name in imports(path)
        if name.startswith("mindtorch.") and "._" in name
    ]
    wrong = {path for path, _ in private} - {"cli/conformance/operators/derived.py"}
    assert not wrong
    assert len({name.rpartition(".")[0] for _, name in private}) < 10


# Names of several classes of the command and the bindings; none is added.


# Each is another thing in the fleet or in the language of declarations; the list may only shrink.
REPEATED = {"Part", "Row", "Tensor", "TensorList"}


def test_a_class_name_has_one_meaning_in_the_command_and_the_bindings():
    names = [
        node.name
        for package in ("cli", "aclnn_bindings")
        for path in modules(package)
        if "simulator/cann/" not in path.as_posix()
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    assert {name for name in names if names.count(name) > 1} <= REPEATED


def arrows():
    """module → modules of the house that it imports; a package's own face is no arrow."""
    paths = {
        name_of(p): p for room in ("aclnn_bindings", "mindtorch", "cli") for p in modules(room)
    }
    return {
        name: {
            n for n in imports(path) if n in paths and n != name and not name.startswith(n + ".")
        }
        for name, path in paths.items()
    }


def test_no_modules_import_each_other_in_a_circle():
    graph = arrows()
    while free := [name for name, needs in graph.items() if not needs]:
        for name in free:
            del graph[name]
        graph = {name: needs.difference(free) for name, needs in graph.items()}
    while ends := set(graph) - {n for needs in graph.values() for n in needs}:
        graph = {name: needs for name, needs in graph.items() if name not in ends}
    assert not graph


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


def test_modules_for_torchs_programs_have_one_name():
    """`mindtorch.jit` is one module by all its names; the place of its file is none of them."""
    code = (
        "import sys, importlib, pickle, mindtorch as torch, mindtorch.jit, mindtorch.cuda.amp\n"
        "from mindtorch._dynamo import config\n"
        "assert mindtorch.jit is torch.jit is sys.modules['mindtorch.jit'], 'two of jit'\n"
        "assert mindtorch.cuda.amp.__name__ == 'mindtorch.cuda.amp'\n"
        "key = torch._C.DispatchKey.CPU\n"
        "assert pickle.loads(pickle.dumps(key)) is key, 'another class'\n"
        # The finder of an editable install knows every file by its path.
        "sys.meta_path[:] = [f for f in sys.meta_path if 'skbc' not in type(f).__module__]\n"
        "try: importlib.import_module('mindtorch._compat.modules.jit')\n"
        "except ModuleNotFoundError: print('one name')"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "one name", done.stderr


def test_modules_for_torchs_programs_are_imported_from_outside_by_no_static_name():
    """They import each other relatively; mindtorch does without them."""
    room = "mindtorch._compat.modules"
    wrong = [
        f"{name_of(path)} -> {name}"
        for path in modules("mindtorch")
        if not name_of(path).startswith(room)
        for name in imports(path)
        if name.startswith(room)
    ]
    assert not wrong


def test_the_top_level_of_mindtorch_is_what_its_users_import():
    names = {p.name for p in (ROOT / "mindtorch").iterdir() if p.name != "__pycache__"}
    assert len(names) <= 45, sorted(names)
