"""`mindtorch-npu probe`: forms of output, exit codes, and that JSON keeps its schema."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fake_cann
import pytest
from mindtorch_npu import main
from mindtorch_npu.commands.probe import document as probe_json

SCHEMA = Path(main.__file__).parent / "commands/probe/probe.schema.json"


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No variable and no default root of this machine reaches a test."""
    for name in list(os.environ):
        if name.startswith(("ASCEND", "MINDTORCH", "ACL")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return fake_cann.copy(fake_cann.whole(), tmp_path / "8.1.RC1")


class Output:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code, stdout and stderr of one run of the command."""
        with pytest.raises(SystemExit) as ended:
            main.main(["probe", *arguments])
        out, err = self.capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, out, err


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Output:
    return Output(capsys)


def problems(
    value: Any, schema: dict[str, Any], top: dict[str, Any], at: str = "$"
) -> Iterator[str]:
    """Where `value` departs from `schema`; the part of JSON Schema that ours uses."""
    if "$ref" in schema:
        schema = top["$defs"][schema["$ref"].rsplit("/", 1)[1]]
    if "anyOf" in schema and all(list(problems(value, s, top, at)) for s in schema["anyOf"]):
        yield f"{at}: matches none"
    if "const" in schema and value != schema["const"]:
        yield f"{at}: {value!r} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at}: {value!r} is not in {schema['enum']}"
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool,
             "number": (int, float), "null": type(None)}  # fmt: skip
    wanted = schema.get("type", [])
    wanted = [wanted] if isinstance(wanted, str) else wanted
    if wanted and not any(isinstance(value, kinds[k]) for k in wanted):
        yield f"{at}: {type(value).__name__} is not {wanted}"
    if isinstance(value, dict):
        yield from (f"{at}: lacks {k}" for k in schema.get("required", []) if k not in value)
        for key, item in value.items():
            inner = schema.get("properties", {}).get(key, schema.get("additionalProperties", {}))
            yield from problems(item, inner, top, f"{at}.{key}")
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from problems(item, schema.get("items", {}), top, f"{at}[{i}]")


def schema() -> dict[str, Any]:
    return dict(json.loads(SCHEMA.read_text()))


def test_a_working_install_leaves_with_zero(run: Output, root: Path) -> None:
    code, out, _ = run("--home", str(root))
    assert code == 0, out
    assert out.splitlines()[:2] == [
        f"CANN 8.1.RC1 at {root}",
        "it works: libraries load, and the smoke test passed",
    ]
    assert "Ascend910B3 (product 910b), 2 devices" in out


@pytest.mark.parametrize("broken", [False, True])
def test_json_keeps_its_schema(run: Output, root: Path, broken: bool) -> None:
    if broken:
        (root / "lib64/libopapi.so").write_bytes(b"")
    code, out, _ = run(
        "--json", "--home", str(root), "--op", "Add", "Nonsense", "--diff", "2026-08"
    )
    data = json.loads(out)
    assert list(problems(data, schema(), schema())) == []
    assert data["schema"] == probe_json.SCHEMA == schema()["$id"]
    assert data["exit_code"] == code == 1
    assert [row["callable"] for row in data["asked"]] == [not broken, False]


def test_the_schema_checker_sees_a_fault() -> None:
    faults = list(problems({"schema": "x", "exit_code": 9}, schema(), schema()))
    assert any("lacks install" in fault for fault in faults)
    assert any("9 is not in" in fault for fault in faults)


def test_json_of_nothing_keeps_its_schema(run: Output, tmp_path: Path) -> None:
    code, out, _ = run("--json", "--home", str(tmp_path))
    assert list(problems(json.loads(out), schema(), schema())) == []
    assert code == 1


def test_a_variable_that_names_nothing_is_a_problem(
    run: Output, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path / "gone"))
    code, out, _ = run()
    assert code == 1
    assert "ASCEND_HOME_PATH" in out
    assert "does not exist" in out


def test_nothing_to_probe_leaves_with_three(run: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aclnn_bindings.install.search.bundled_simulator", lambda: None)
    monkeypatch.setattr("aclnn_bindings.install.search.default_bases", lambda _environ: ())
    code, out, _ = run()
    assert code == 3
    assert "install the toolkit" in out


@pytest.mark.parametrize(
    "arguments",
    [["surplus"], ["--home", "a", "--simulator"], ["--diff", "nothing"], ["--unknown"]],
)
def test_wrong_usage_leaves_with_two(run: Output, arguments: list[str]) -> None:
    code, _, err = run(*arguments)
    assert code == 2
    assert "Usage:" in err


def test_markdown_has_the_same_facts(run: Output, root: Path) -> None:
    code, out, _ = run("--md", "--home", str(root))
    assert code == 0, out
    assert "## Operators" in out
    assert "| libopapi.so | 4 | 4 | 4 |" in out
    assert "\x1b" not in out


def test_an_operator_is_shown_with_its_prototype_and_its_documents(run: Output, root: Path) -> None:
    code, out, _ = run("--home", str(root), "--no-run", "--op", "aclnnAdd")
    assert code == 0, out
    assert "const aclTensor *self," in out
    assert "950 A3 910b 910" in out


def test_an_operator_that_is_not_here_is_a_problem_with_near_names(run: Output, root: Path) -> None:
    code, out, _ = run("--home", str(root), "--no-run", "--op", "Matmull")
    assert code == 1
    assert "did you mean aclnnMatmul" in out


def test_comparison_with_a_saved_report_shows_what_went_away(
    run: Output, root: Path, tmp_path: Path
) -> None:
    _, saved, _ = run("--json", "--no-run", "--home", str(root))
    (tmp_path / "before.json").write_text(saved)
    fake_cann.compile_library(root / "lib64/libopapi.so", fake_cann.op_source(("aclnnMul",)))
    _, out, _ = run("--json", "--no-run", "--home", str(root), "--diff", f"{tmp_path}/before.json")
    difference = json.loads(out)["diff"]
    assert difference["removed_ops"] == ["aclnnAdd", "aclnnIndexPutImpl", "aclnnMatmul"]
    assert difference["added"] == []


def test_comparison_with_a_version_classes_changes(run: Output, root: Path) -> None:
    header = root / "include/acl/acl.h"
    header.write_text(header.read_text().replace("int8_t cubeMathType", "int64_t cubeMathType"))
    _, out, _ = run("--no-run", "--home", str(root), "--diff", "8.1.RC1")
    assert "1 break the ABI" in out
    assert "breaks ABI: cubeMathType: int8_t -> int64_t" in out


SECRETS = {
    "ASCEND_TOKEN": "hunter2", "NPU_SSHKEY": "hunter2", "ASCEND_LOGIN": "hunter2",
    "ASCEND_SOURCE": "https://me:hunter2@host", "HCCL_AUTH_HEADER": "X hunter2",
    "ASCEND_TOOLKIT_HOME": "https://host/x#hunter2", "LD_LIBRARY_PATH": "s3://bucket/?k=hunter2",
    "LD_PRELOAD": "/none?hunter2", "ASCEND_CUSTOM_OPP_PATH": "https://host/#hunter2",
    "ASCEND_RT_VISIBLE_DEVICES": "hunter2", "ASCEND_OPP_PATH": "/x#hunter2",
    "MINDTORCH_CANN_HOME": "//share/x?sig=hunter2", "ATB_HOME_PATH": "/atb@hunter2",
}  # fmt: skip


@pytest.mark.parametrize("form", ["--json", "--md", ""])
@pytest.mark.parametrize("named", [True, False])
def test_no_secret_of_the_environment_is_shown(
    run: Output, root: Path, monkeypatch: pytest.MonkeyPatch, form: str, named: bool
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    target = ("--home", str(root)) if named else ()
    _, out, err = run(*filter(None, [form]), "--no-run", *target)
    assert "hunter2" not in out + err
    if form == "--json":
        assert json.loads(out)["environment"]["ASCEND_TOKEN"] == "***"


@pytest.mark.parametrize("columns", [40, 60, 200])
def test_no_line_is_wider_than_the_terminal(
    run: Output, root: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    _, out, _ = run("--home", str(root), "--op", "Add")
    assert max(map(len, out.splitlines())) <= columns


def test_output_of_a_pipe_has_no_colour_and_no_trailing_space(run: Output, root: Path) -> None:
    _, out, _ = run("--home", str(root), "--no-run")
    assert "\x1b" not in out
    assert [line for line in out.splitlines() if line != line.rstrip()] == []


def test_headers_only_is_a_problem(run: Output, root: Path) -> None:
    shutil.rmtree(root / "lib64")
    code, out, _ = run("--headers", str(root / "include"))
    assert code == 1
    assert "headers only" in out
