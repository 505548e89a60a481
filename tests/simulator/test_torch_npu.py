"""torch_npu, unmodified, trains on the simulator to the losses of the CPU."""

import contextlib
import csv
import functools
import importlib.metadata
import importlib.util
import json
import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from compiled import install
from mindtorch_npu.main import main

VERSION = "2.13.0"  # of torch and of torch-npu, which must agree
HERE = Path(__file__).parent


def _installed(name: str) -> str:
    try:
        return importlib.metadata.version(name).partition("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def _fetch(folder: Path) -> None:
    """Put torch-npu into its own folder: installed beside torch, it loads on every import."""
    if folder.exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        made = Path(scratch) / "made"
        done = subprocess.run(
            [sys.executable, "-m", "pip", "install", "-q", "--retries", "1", "--no-deps",
             "--only-binary", ":all:", "--target", str(made), f"torch-npu=={VERSION}", "pyyaml"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            reason = (done.stderr.strip() or "pip failed").splitlines()[-1]
            pytest.skip(f"torch-npu {VERSION} cannot be installed here: {reason}")
        with contextlib.suppress(OSError):  # not empty: another test process was faster
            made.rename(folder)
    assert folder.exists()


@pytest.fixture(scope="module")
def torch_npu_path(request: pytest.FixtureRequest) -> str:
    """What PYTHONPATH must hold for `import torch_npu` to work."""
    install()
    if (found := _installed("torch")) != VERSION:
        pytest.skip(f"torch-npu {VERSION} needs torch {VERSION}; here it is {found}")
    if importlib.util.find_spec("torch_npu") is not None:
        return ""
    assert request.config.cache is not None
    folder = request.config.cache.mkdir("torch-npu") / f"{VERSION}-{sys.implementation.cache_tag}"
    _fetch(folder)
    return str(folder)


@functools.cache
def stdout_on_cpu(script: str, *arguments: str) -> str:
    alone = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    command = [sys.executable, str(HERE / script), "cpu", *arguments]
    return subprocess.run(command, env=alone, capture_output=True, check=True, text=True).stdout


def on_cpu(script: str, *arguments: str) -> list[float]:
    return losses(stdout_on_cpu(script, *arguments))


def losses(output: str) -> list[float]:
    return [float(word) for word in output.split()]


@pytest.fixture
def sim_run(
    torch_npu_path: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., tuple[str, str]]:
    """Runs a program of this folder with `run --simulator`; returns its output and errors."""
    before = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [torch_npu_path, before])))
    monkeypatch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")

    def run(
        product: str, script: str, *arguments: str, options: tuple[str, ...] = ()
    ) -> tuple[str, str]:
        program = [sys.executable, str(HERE / script), *arguments]
        with pytest.raises(SystemExit) as ended:
            main(["run", "--simulator", "--soc", product, *options, "--", *program])
        output, errors = capfd.readouterr()
        assert ended.value.code == 0, errors
        return output, errors

    return run


@pytest.mark.parametrize(
    ("script", "product"),
    [
        pytest.param("train_mlp.py", "Ascend910B2", marks=pytest.mark.slow),
        ("train_mlp.py", "Ascend950PR_9599"),  # there torch_npu has no way but ACLNN
        ("train_lm.py", "Ascend910B2"),
    ],
)
def test_a_model_trains_to_the_losses_of_the_cpu(
    script: str, product: str, sim_run: Callable[..., tuple[str, str]]
) -> None:
    output, errors = sim_run(product, script, "npu", options=("--strict", "--allow", "torch_npu"))
    expected = on_cpu(script)
    assert expected[-1] < expected[0]
    # float32 on both sides, sums in another order: a few units in the last place per step.
    assert losses(output) == pytest.approx(expected, rel=1e-5)
    # The program misuses nothing; what torch_npu itself leaves is known.
    assert "strict: no misuse found" in errors


@pytest.mark.sampled(2)
@pytest.mark.parametrize("strict", ["error", "abort"])
def test_a_clean_program_ends_well_under_strict_mode(
    strict: str, sim_run: Callable[..., tuple[str, str]]
) -> None:
    options = ("--strict", strict, "--allow", "torch_npu")
    _, errors = sim_run("Ascend910B2", "train_mlp.py", "npu", options=options)
    assert "strict: no misuse found" in errors


def test_small_calls_of_torch_equal_the_cpu(
    sim_run: Callable[..., tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    # An error is then raised by its own call, and harms none of those that follow.
    monkeypatch.setenv("ASCEND_LAUNCH_BLOCKING", "1")
    output, errors = sim_run("Ascend910B2", "torch_npu_calls.py")
    *differing, count = output.splitlines()
    assert differing == [], errors
    assert int(count.removesuffix(" calls")) > 140


@pytest.mark.parametrize("script", ["torch_npu_functions.py", "cuda_program.py"])
def test_mindtorch_in_its_place_prints_the_same(
    script: str, sim_run: Callable[..., tuple[str, str]], monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)  # it saves a file
    expected, _ = sim_run("Ascend910B2", script)
    command = [sys.executable, "-m", "mindtorch_npu", "exec", "--npu", "--", sys.executable]
    done = subprocess.run(
        [*command, str(HERE / script)], capture_output=True, text=True, check=False
    )
    assert done.stdout == expected, done.stderr


def free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])


def test_devices_that_average_gradients_train_to_the_losses_of_one(
    sim_run: Callable[..., tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASTER_PORT", str(free_port()))
    output, _ = sim_run("Ascend910B2", "train_ddp.py", "npu", "2")
    expected = on_cpu("train_ddp.py", "1")
    assert len(expected) == 6
    # PackedInt4 of a batch are summed apart: a few units in the last place per step.
    assert losses(output) == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow  # half a minute and more of both cores
@pytest.mark.parametrize("count", ["2", "4"])
def test_devices_that_share_parameters_train_to_the_losses_of_one(
    count: str, sim_run: Callable[..., tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASTER_PORT", str(free_port()))
    options = ("--devices", count)
    output, _ = sim_run("Ascend910B2", "train_sharded.py", "npu", count, options=options)
    expected = on_cpu("train_sharded.py", "1")
    assert len(expected) == 20
    assert losses(output) == pytest.approx(expected, rel=1e-5)


def test_a_captured_training_step_replays_to_the_losses_of_the_cpu(
    sim_run: Callable[..., tuple[str, str]],
) -> None:
    output, _ = sim_run("Ascend910B2", "train_graph.py", "npu")
    *seen, refused = output.splitlines()
    assert losses(" ".join(seen)) == pytest.approx(on_cpu("train_graph.py"), rel=1e-5)
    assert refused == "6.0"  # a capture that failed harms nothing that follows


@pytest.mark.slow  # half a minute of a core, and transformers
def test_beam_search_of_language_models_equals_the_cpu(
    sim_run: Callable[..., tuple[str, str]],
) -> None:
    pytest.importorskip("transformers")
    output, _ = sim_run("Ascend910B2", "generate_beams.py", "npu")
    seen, expected = (
        {row[0]: row[1:] for row in map(json.loads, lines.splitlines())}
        for lines in (output, stdout_on_cpu("generate_beams.py"))
    )
    assert len(expected) == 11
    for name, (plain, several, scores) in expected.items():
        assert seen[name][:2] == [plain, several], name
        # Rounded to four places by the program: sums in another order may round otherwise.
        assert seen[name][2] == pytest.approx(scores, abs=2e-4), name


def test_operators_by_type_name_equal_the_cpu_and_a_refusal_poisons_nothing(
    sim_run: Callable[..., tuple[str, str]],
) -> None:
    output, errors = sim_run("Ascend910B2", "torch_npu_types.py")
    assert output.splitlines() == ["6.0"], errors


def test_its_profiler_writes_a_timeline_of_kernels(
    sim_run: Callable[..., tuple[str, str]], tmp_path: Path
) -> None:
    # torch_npu's scheduler of parsers closes a thread's pipe twice (`_task_manager.py`: the thread
    # and `__remove_listening`), so that at times another parser loses its own and counts as failed.
    for attempt in range(6):
        place = tmp_path / str(attempt)
        place.mkdir()
        output, errors = sim_run("Ascend910B2", "train_profiled.py", str(place), "Text")
        if "run failed" not in output + errors:
            break
    else:
        pytest.fail(output)
    (folder,) = place.glob("*/ASCEND_PROFILER_OUTPUT")
    with (folder / "kernel_details.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for step in "23":
        names = [row["Name"] for row in rows if row["Step Id"] == step]
        assert names.count("aclnnAddmm") == 2
    events = json.loads((folder / "trace_view.json").read_text())
    names = {event["name"] for event in events}
    assert {"ProfilerStep#2", "aten::linear", "aclnnAddmm", "MsTx@step 2"} <= names
    arrows = [e for e in events if e.get("cat") == "async_npu" and e["ph"] == "f"]
    assert len(arrows) >= 10  # from torch's operators to their kernels
    for table in ("step_trace_time", "operator_memory", "api_statistic", "op_statistic"):
        assert len((folder / f"{table}.csv").read_text().splitlines()) > 1, table


@pytest.mark.slow  # what it reads is tested without torch_npu in test_profile.py
def test_its_profiler_writes_a_database_of_kernels(
    sim_run: Callable[..., tuple[str, str]], tmp_path: Path
) -> None:
    output, errors = sim_run("Ascend910B2", "train_profiled.py", str(tmp_path), "Db")
    assert "failed" not in (output + errors).lower(), output + errors
    (folder,) = tmp_path.glob("*/ASCEND_PROFILER_OUTPUT")
    (path,) = folder.glob("ascend_pytorch_profiler*.db")
    connection = sqlite3.connect(path)
    # From what torch_npu ties to a launch, the innermost of its operators, to the kernel.
    tied = connection.execute(
        "SELECT DISTINCT torch.value, kernel.value FROM PYTORCH_API AS api "
        "JOIN STRING_IDS AS torch ON torch.id = api.name "
        "JOIN CONNECTION_IDS AS tie ON tie.id = api.connectionId "
        "JOIN TASK AS task ON task.connectionId = tie.connectionId "
        "JOIN COMPUTE_TASK_INFO AS info USING (globalTaskId) "
        "JOIN STRING_IDS AS kernel ON kernel.id = info.name"
    ).fetchall()
    assert {("aclnnAddmm", "aclnnAddmm"), ("aclnnRelu", "aclnnRelu")} <= set(tied), tied
    assert all(torch == kernel for torch, kernel in tied)
    assert len(connection.execute("SELECT id FROM STEP_TIME").fetchall()) == 2
    connection.close()
    (analysis,) = folder.glob("analysis.db")
    connection = sqlite3.connect(analysis)
    steps = connection.execute("SELECT step, computing FROM StepTraceTime").fetchall()
    assert [step for step, _ in steps] == ["2", "3"]
    assert all(computing > 0 for _, computing in steps)
    connection.close()
