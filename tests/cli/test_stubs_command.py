"""`stubs`: what a type checker is told of an install is what its calls accept and refuse."""

import ast
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from mindtorch_npu import exits
from mindtorch_npu.commands.stubs import text
from mindtorch_npu.commands.stubs.command import stubs

import aclnn_bindings
from aclnn_bindings.call.namespace import Namespace
from aclnn_bindings.interface import catalog
from aclnn_bindings.interface.signature import Declarations

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """\
import aclnn_bindings
from aclnn_bindings import ScalarSpec
cann = aclnn_bindings.open()
a, out = cann.empty((2,)), cann.empty((2,))
cann.ops.aclnnAdd(self=a, other=a, alpha=1.0, out=out)
cann.ops.aclnnAdd(a, a, ScalarSpec(1.0), out, stream=cann.runtime.current_stream())
cann.ops.aclnnAdd(self=a, othr=a, alpha=1.0, out=out)  # call-arg
cann.ops.aclnnAdd(a, a, 1.0)  # call-arg
cann.ops.aclnnAdd(a, a, [1.0], out)  # arg-type
cann.ops.aclnnCast(a, 3, out)
cann.ops.aclnnCast(a, "FLOAT16", out)
cann.ops.aclnnPermute(a, (1, 0), out)
cann.ops.aclnnPermute(a, 1, out)  # arg-type
cann.ops.aclnnAdd(a, a, 1.0, out, stream=0)  # arg-type
cann.ops.aclnnNoSuch(a)  # attr-defined
cann.ops.aclnnAdd.plan(a.spec, a.spec, ScalarSpec(1.0), a.spec)
count: int = cann.functions.aclrtGetDeviceCount()
name: int = cann.functions.aclrtGetSocName()  # assignment
"""
OPS = ("aclnnAdd", "aclnnCast", "aclnnPermute")
FUNCTIONS = ("aclrtGetDeviceCount", "aclrtGetSocName")


def declared() -> Declarations:
    return catalog.load("8.1.RC1")


def test_a_type_checker_sees_each_wrong_call_and_no_other(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy reads the stubs")
    site, work = tmp_path / "site", tmp_path / "work"
    package = site / "aclnn_bindings-stubs"
    for folder in (package / "call", work):
        folder.mkdir(parents=True)
    (package / "py.typed").write_text("partial\n")
    content = text.render(declared(), OPS, FUNCTIONS, "a test")
    (package / "call" / "namespace.pyi").write_text(content)
    (site / "aclnn_bindings").symlink_to(ROOT / "aclnn_bindings")
    (work / "program.py").write_text(PROGRAM)
    # mypy looks for stub packages where its interpreter finds packages: here, PYTHONPATH.
    command = [sys.executable, "-m", "mypy", "--config-file=", "--follow-imports=silent",
               "--cache-dir", str(tmp_path / "cache"), "--no-error-summary", "program.py",
               ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run(
        command, cwd=work, env=environment, capture_output=True, text=True, check=False
    )
    seen = [(int(line.split(":")[1]), line.rpartition("[")[2].rstrip("]"))
            for line in done.stdout.splitlines() if ": error:" in line]  # fmt: skip
    expected = [(at, line.rpartition("# ")[2])
                for at, line in enumerate(PROGRAM.splitlines(), 1) if "# " in line]  # fmt: skip
    assert seen == expected, done.stdout + done.stderr


def test_every_declared_call_is_python(tmp_path: Path) -> None:
    known = declared()
    source = text.render(known, known.ops, known.functions, "a test")
    compile(source, "namespace.pyi", "exec")
    for name in known.ops:
        assert f"    {name}: _BoundOp_{name}\n" in source


def test_a_parameter_that_python_cannot_name_is_passed_by_the_name_that_is_shown() -> None:
    with aclnn_bindings.open(simulator=True) as cann:
        random = cann.ops.aclnnInplaceRandom
        shown = list(inspect.signature(random).parameters)
        assert shown == ["selfRef", "arg1", "to", "seed", "offset", "stream"]
        out = cann.empty((64,))
        random(selfRef=out, arg1=2, to=5, seed=1, offset=0)
        assert set(out.numpy().tolist()) == {2.0, 3.0, 4.0}
        random(selfRef=out, **{"from": 7}, to=8, seed=1, offset=0)
        assert set(out.numpy().tolist()) == {7.0}


def test_the_command_writes_a_partial_stub_package(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        stubs, ["--simulator", "--out", str(tmp_path)], standalone_mode=False
    )
    assert result.return_value == exits.OK, result.output
    assert (tmp_path / "aclnn_bindings-stubs" / "py.typed").read_text() == "partial\n"
    content = (tmp_path / "aclnn_bindings-stubs" / "call" / "namespace.pyi").read_text()
    assert "class _BoundOp_aclnnAdd(BoundOp):" in content
    assert "aclnnAdd: _BoundOp_aclnnAdd" in content
    assert "PYTHONPATH=" in result.output  # as checkers look nowhere else for it
    (shown,) = (
        node
        for node in ast.parse(content).body
        if isinstance(node, ast.ClassDef) and node.name == "Namespace"
    )
    methods = {node.name for node in shown.body if isinstance(node, ast.FunctionDef)}
    plain = {"__getattr__", "__dir__", "__repr__"}  # what every object has, or would allow any name
    assert methods == {n for n, v in vars(Namespace).items() if callable(v)} - plain


def test_where_nothing_can_be_written_the_way_out_is_named(tmp_path: Path) -> None:
    (tmp_path / "aclnn_bindings-stubs").write_text("a file")
    result = CliRunner().invoke(stubs, ["--simulator", "--out", str(tmp_path)])
    assert result.exit_code == exits.USAGE
    assert "--out" in result.output


def test_an_install_without_declarations_is_refused_by_name(tmp_path: Path) -> None:
    result = CliRunner().invoke(stubs, ["--home", str(tmp_path)], standalone_mode=False)
    assert result.return_value == exits.NOTHING
