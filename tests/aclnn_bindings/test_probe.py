"""Whole probes of installs that work and of installs broken in one way each."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import fake_cann
import pytest

from aclnn_bindings.diagnose.causes import Cause, causes
from aclnn_bindings.diagnose.census import Status
from aclnn_bindings.diagnose.child import StepResult
from aclnn_bindings.diagnose.probe import Report, Request, load_order, probe
from aclnn_bindings.install.describe import arch
from aclnn_bindings.install.segments import read_segments

BASE = {"PATH": os.environ["PATH"]}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return fake_cann.copy(fake_cann.whole(), tmp_path / "8.1.RC1")


def ask(
    root: Path | None,
    environ: dict[str, str] | None = None,
    *,
    headers: Path | None = None,
    needed: Sequence[str] = (),
    run: bool = True,
    timeout: float = 60.0,
) -> tuple[Report, tuple[Cause, ...]]:
    environ = {**BASE, **(environ or {})}
    request = Request(root, False, headers, needed, run, (), timeout, timeout)
    report = probe(request, environ)
    return report, causes(report, environ)


def errors(found: Sequence[Cause]) -> list[str]:
    return [cause.what for cause in found if cause.severity == "error"]


def states(report: Report) -> dict[str, str]:
    return {step.name: step.state for step in report.smoke}


def test_a_whole_install_works(root: Path) -> None:
    report, found = ask(root, fake_cann.environment(root))
    assert errors(found) == []
    assert set(states(report).values()) == {"ok"}
    assert [s.state for s in report.loads] == ["ok"] * 3
    assert report.fact("soc") == "Ascend910B3"
    assert report.fact("devices") == 2
    assert report.fact("memory_total") == 64 << 30
    assert report.census is not None
    assert all(op.callable for op in report.census.ops.values())


def test_the_split_layout_works(tmp_path: Path) -> None:
    root = fake_cann.make_install(tmp_path / "cann-8.5.0", split=True)
    report, found = ask(root)
    assert errors(found) == []
    assert report.install is not None
    assert report.install.layout == "split"
    assert report.census is not None
    assert report.census.ops["aclnnAdd"].library.endswith("libopapi_math.so")
    assert report.census.ops["aclnnMul"].library.endswith("libopapi_nn.so")


def test_the_legacy_layout_works(root: Path) -> None:
    (root / "lib64/libopapi.so").rename(root / "lib64/libaclnn_math.so")
    report, found = ask(root)
    assert errors(found) == []
    assert report.install is not None
    assert report.install.layout == "legacy"


def test_single_beside_split_is_warned_of_and_split_wins(root: Path) -> None:
    base = root / "lib64/libnnopbase.so"
    fake_cann.compile_library(root / "lib64/libopapi_math.so", fake_cann.ADD, (base,))
    report, found = ask(root, run=False)
    assert "libopapi.so stands beside the split libopapi_*.so" in [c.what for c in found]
    assert report.census is not None
    assert report.census.functions["aclnnAdd"].library.endswith("libopapi_math.so")


def test_a_runtime_without_operators_says_so(root: Path) -> None:
    (root / "lib64/libopapi.so").unlink()
    _, found = ask(root, run=False)
    assert errors(found) == ["no operator library (libopapi*.so) in this install"]


def test_without_running_nothing_is_loaded(root: Path) -> None:
    report, _ = ask(root, run=False)
    assert (report.loads, report.smoke) == ((), ())
    assert report.census is not None
    assert report.census.count(Status.PRESENT) > 20


def test_nothing_named_and_nothing_found() -> None:
    report, found = ask(None)
    if report.install is not None:
        assert report.install.kind == "simulator"
        return
    assert errors(found) == ["no CANN and no simulator on this machine"]


def test_an_empty_home_is_named_with_its_variable(tmp_path: Path) -> None:
    report, found = ask(None, {"ASCEND_HOME_PATH": str(tmp_path)})
    assert report.install is None
    assert errors(found) == [
        f"ASCEND_HOME_PATH={tmp_path}: {tmp_path} holds neither headers nor libraries of CANN"
    ]
    assert "set_env.sh" in found[0].fix


def test_headers_only_list_functions_that_nothing_provides(root: Path) -> None:
    shutil.rmtree(root / "lib64")
    report, found = ask(None, {"ASCEND_HOME_PATH": str(root)})
    assert errors(found) == ["headers only: there are no libraries, so nothing can run"]
    assert report.census is not None
    assert report.census.count(Status.PRESENT) == 0
    assert report.census.count(Status.MISSING) == len(fake_cann.functions(fake_cann.OPS))


def test_a_folder_of_headers_can_be_probed_alone(root: Path) -> None:
    report, _ = ask(None, headers=root / "include")
    assert report.install is not None
    assert report.declared is not None
    assert set(report.declared.ops) == set(fake_cann.OPS)


def test_headers_given_replace_those_of_the_install(root: Path, tmp_path: Path) -> None:
    shutil.move(root / "include", tmp_path / "include")
    report, found = ask(root, headers=tmp_path / "include")
    assert errors(found) == []
    assert report.declared is not None
    assert set(report.declared.ops) == set(fake_cann.OPS)


def test_a_known_version_without_headers_uses_its_catalog(root: Path) -> None:
    shutil.rmtree(root / "include")
    report, found = ask(root)
    assert report.declared_from == "catalog 8.1.RC1"
    assert set(states(report).values()) == {"ok"}
    assert "no headers: signatures come from the catalog 8.1.RC1" in [c.what for c in found]


def test_an_unknown_version_without_headers_is_listed_and_not_called(root: Path) -> None:
    shutil.rmtree(root / "include")
    fake_cann.write_version(root, "7.7.7")
    report, found = ask(root)
    assert errors(found) == [
        "no headers and no catalog of this version: functions are listed, not called"
    ]
    assert states(report) == {"init": "not run"}
    assert report.census is not None
    assert report.census.count(Status.UNDECLARED) > 20


def test_a_removed_symbol_is_missing_and_named(tmp_path: Path) -> None:
    root = fake_cann.make_install(tmp_path / "8.1.RC1", ("aclnnAdd", "aclnnMul"))
    fake_cann.write_headers(root / "include", ("aclnnAdd", "aclnnMul", "aclnnMatmul"))
    report, found = ask(root, needed=("aclnnMul", "aclnnMatmul"))
    assert report.census is not None
    assert report.census.functions["aclnnMatmul"].status is Status.MISSING
    lacking = next(c for c in found if "operators wanted" in c.what)
    assert lacking.what.startswith("1 of 2")
    assert (
        lacking.evidence == "aclnnMatmul: aclnnMatmulGetWorkspaceSize and aclnnMatmul not exported"
    )
    assert "1 operator is declared but not exported: aclnnMatmul" in [c.what for c in found]
    assert set(states(report).values()) == {"ok"}


def test_a_symbol_that_no_header_declares_is_undeclared(root: Path) -> None:
    source = fake_cann.op_source(("aclnnSecret",))
    fake_cann.compile_library(root / "lib64/libaclnn_math.so", source)
    report, _ = ask(root, run=False)
    assert report.census is not None
    assert report.census.functions["aclnnSecret"].status is Status.UNDECLARED
    assert not report.census.ops["aclnnSecret"].callable


def test_a_header_of_another_version_has_drifted(root: Path) -> None:
    header = root / "include/acl/acl.h"
    header.write_text(header.read_text().replace("int8_t cubeMathType", "int64_t cubeMathType"))
    report, found = ask(root, run=False)
    assert report.census is not None
    row = report.census.functions["aclnnMatmulGetWorkspaceSize"]
    assert row.status is Status.DRIFTED
    assert errors(found) == ["1 function differs from this version's catalog"]


def test_a_library_cut_in_half_is_called_truncated(root: Path) -> None:
    path = root / "lib64/libopapi.so"
    data = path.read_bytes()
    whole = read_segments(data)
    assert whole is not None
    # Half of what is mapped: half of the file may be all of it, as on AArch64.
    path.write_bytes(data[: whole.end // 2])
    report, found = ask(root)
    assert errors(found)[0].startswith("libopapi.so is truncated")
    assert states(report)["copy"] == "ok"
    assert states(report)["add"] == "failed"


def test_a_library_of_another_machine_is_read_and_refused(root: Path) -> None:
    path = root / "lib64/libopapi.so"
    data = bytearray(path.read_bytes())
    data[18:20] = (183 if arch() != "aarch64" else 62).to_bytes(2, "little")
    path.write_bytes(data)
    report, found = ask(root)
    assert f"this machine is {arch()}" in errors(found)[0]
    assert report.census is not None
    assert report.census.ops["aclnnAdd"].installed
    assert not report.census.ops["aclnnAdd"].callable


def test_a_missing_dependency_is_told_in_the_loaders_words(root: Path) -> None:
    (root / "lib64/libnnopbase.so").unlink()
    report, found = ask(root)
    assert errors(found)[0] == "libnnopbase.so not found"
    assert "libnnopbase.so: cannot open shared object file" in found[0].evidence
    assert report.census is not None
    assert not report.census.ops["aclnnAdd"].callable


@pytest.mark.parametrize("container", [True, False])
def test_a_missing_driver_library_is_told_as_a_missing_driver(
    root: Path, monkeypatch: pytest.MonkeyPatch, container: bool
) -> None:
    monkeypatch.setattr("aclnn_bindings.diagnose.loader_words.in_container", lambda: container)
    driver = fake_cann.compile_library(root / "tmp/libascend_hal.so", "int hal;")
    fake_cann.compile_library(root / "lib64/libascendcl.so", fake_cann.RUNTIME, (driver,))
    driver.unlink()
    _, found = ask(root)
    where = "not mounted into this container" if container else "not installed"
    assert errors(found)[0] == f"libascend_hal.so not found: the driver is {where}"
    assert ("/dev/davinci_manager" in found[0].fix) is container


def test_an_undefined_symbol_means_mixed_versions(root: Path) -> None:
    source = "extern int only_in_newer; int *where = &only_in_newer;"
    fake_cann.compile_library(root / "lib64/libacl_cblas.so", source)
    _, found = ask(root)
    assert errors(found) == []
    what = "symbol only_in_newer is in no loaded library"
    assert [(c.severity, c.what) for c in found if "only_in" in c.what] == [("warning", what)]


def test_a_crash_in_the_device_is_a_row(tmp_path: Path) -> None:
    root = fake_cann.make_install(tmp_path / "8.1.RC1", defines={"ON_INIT": "abort()"})
    report, found = ask(root)
    assert states(report) == {"init": "crashed"}
    assert report.smoke[0].detail == "the process died of SIGABRT"
    assert errors(found) == ["smoke test: init crashed"]


def test_a_hang_is_stopped_and_is_a_row(tmp_path: Path) -> None:
    root = fake_cann.make_install(tmp_path / "8.1.RC1", defines={"ON_INIT": "sleep(60)"})
    report, found = ask(root, timeout=1.0)
    assert states(report) == {"init": "timed out"}
    assert errors(found) == ["smoke test: init timed out"]


@pytest.mark.parametrize(
    ("stated", "expected"), [(None, {15.0, 60.0}), ("1200", {1200.0}), ("soon", {15.0, 60.0})]
)
def test_a_slow_machine_may_ask_for_patience(
    root: Path, monkeypatch: pytest.MonkeyPatch, stated: str | None, expected: set[float]
) -> None:
    seen: set[float] = set()

    def run(
        program: str, request: object, timeout: float, environ: object
    ) -> tuple[StepResult, ...]:
        seen.add(timeout)
        return (StepResult(program, "ok", 0.0, ""),)

    monkeypatch.setattr("aclnn_bindings.diagnose.child.run", run)
    environ = fake_cann.environment(root)
    if stated is not None:
        environ["MINDTORCH_START_SECONDS"] = stated
    probe(Request(root, bases=()), environ)
    assert seen == expected


@pytest.mark.parametrize(
    ("signal", "said"),
    [("SIGABRT", "crashed"), ("SIGILL", "met an instruction that this processor lacks")],
)
def test_a_library_that_kills_its_loader_does_not_hide_the_others(
    root: Path, signal: str, said: str
) -> None:
    go = f"__attribute__((constructor)) static void go(void) {{ raise({signal}); }}"
    source = f"#include <signal.h>\n{go}"
    fake_cann.compile_library(root / "lib64/libacl_cblas.so", source)
    report, found = ask(root)
    ends = {Path(step.name).name: step.state for step in report.loads}
    assert ends["libacl_cblas.so"] == "crashed"
    assert sorted(ends.values()) == ["crashed", "ok", "ok", "ok"]
    (step,) = (step for step in report.loads if step.state == "crashed")
    assert f"died of {signal}" in step.detail
    assert f"loading libacl_cblas.so {said}" in [c.what for c in found if c.severity == "warning"]
    assert states(report)["add"] == "ok"


def test_no_device_is_told(tmp_path: Path) -> None:
    root = fake_cann.make_install(tmp_path / "8.1.RC1", defines={"DEVICES": "0"})
    report, found = ask(root)
    assert states(report) == {"init": "ok", "device": "failed"}
    assert found[0].evidence == "aclrtGetDeviceCount found no device"


def test_a_failing_call_carries_its_symbol_its_text_and_a_remedy(tmp_path: Path) -> None:
    root = fake_cann.make_install(tmp_path / "8.1.RC1", defines={"ADD_CODE": "561003"})
    report, found = ask(root)
    assert states(report)["add"] == "failed"
    first = found[0]
    assert "561003 (ACLNN_ERR_INNER_FIND_KERNEL_ERROR)" in first.evidence
    assert "EZ1001: the fake is broken on purpose" in first.evidence
    assert "no kernel for these dtypes" in first.fix


def test_a_wrong_result_is_a_failure(root: Path) -> None:
    wrong = fake_cann.ADD.replace("a[i] + alpha", "a[i] - alpha")
    base = root / "lib64/libnnopbase.so"
    source = wrong + fake_cann.op_source(fake_cann.OPS)
    fake_cann.compile_library(root / "lib64/libopapi.so", source, (base,))
    report, found = ask(root)
    assert states(report)["add"] == "failed"
    assert "expected [3.0, 6.0" in found[0].evidence


def test_stub_libraries_first_on_the_path_are_warned_of(root: Path) -> None:
    path = f"{root}/devlib:{root}/lib64"
    _, found = ask(root, {**fake_cann.environment(root), "LD_LIBRARY_PATH": path})
    assert "LD_LIBRARY_PATH reaches the stub libraries first" in [c.what for c in found]


def test_two_homes_are_warned_of(root: Path, tmp_path: Path) -> None:
    environ = {**fake_cann.environment(root), "ASCEND_TOOLKIT_HOME": str(tmp_path)}
    _, found = ask(None, environ)
    assert "ASCEND_HOME_PATH and ASCEND_TOOLKIT_HOME name two installs" in [c.what for c in found]


def test_an_install_that_no_variable_names_is_used_and_told(root: Path, tmp_path: Path) -> None:
    (tmp_path / "ascend-toolkit").mkdir()
    shutil.move(root, tmp_path / "ascend-toolkit/8.1.RC1")
    (tmp_path / "ascend-toolkit/set_env.sh").write_text("export PATH=$PATH\n")
    report = probe(Request(run=False, bases=(tmp_path,)), BASE)
    assert report.install is not None
    assert report.install.found_via == "default root"
    note = next(c for c in causes(report, BASE) if "not set up in this shell" in c.what)
    assert note.fix == f"source {tmp_path}/ascend-toolkit/set_env.sh"


def test_a_dependency_off_the_loaders_path_is_found_and_warned_of(root: Path) -> None:
    helper = fake_cann.compile_library(root / "runtime/lib64/libruntime.so", "int helper;")
    fake_cann.compile_library(root / "lib64/libacl_cblas.so", "int cblas;", (helper,))
    report, found = ask(root)
    assert errors(found) == []
    assert [step.state for step in report.loads] == ["ok"] * 4
    assert "libruntime.so not on the loader's path" in [c.what for c in found]


def test_libraries_load_after_those_they_need(root: Path) -> None:
    report, _ = ask(root, run=False)
    order = [library.name for library in load_order(report.files)]
    assert order == ["libascendcl.so", "libnnopbase.so", "libopapi.so"]


def test_custom_packages_win_and_what_they_shadow_is_listed(root: Path, tmp_path: Path) -> None:
    vendor = tmp_path / "vendor"
    fake_cann.compile_library(
        vendor / "op_api/lib/libcust_opapi.so", fake_cann.op_source(("aclnnMul", "aclnnMine"))
    )
    environ = {**fake_cann.environment(root), "ASCEND_CUSTOM_OPP_PATH": str(vendor)}
    report, _ = ask(root, environ, run=False)
    assert report.census is not None
    row = report.census.functions["aclnnMul"]
    assert row.library.endswith("libcust_opapi.so")
    assert row.shadowed == (str(root / "lib64/libopapi.so"),)
    assert report.census.functions["aclnnMine"].status is Status.UNDECLARED


def test_the_simulator_passes_its_own_probe() -> None:
    request = Request(simulator=True, bases=())
    report = probe(request, BASE)
    if report.install is None:
        pytest.skip("the simulator is not built in this tree")
    assert errors(causes(report, BASE)) == []
    assert set(states(report).values()) == {"ok"}
    assert report.census is not None
    assert report.census.count(Status.MISSING) == 0
    assert report.census.count(Status.DRIFTED) == 0
