"""Makes `cli/` importable as `mindtorch_npu` when the tests run from a source tree."""

import gc
import importlib.util
import os
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def _map_cli() -> None:
    if importlib.util.find_spec("mindtorch_npu") is not None:
        return
    spec = importlib.util.spec_from_file_location(
        "mindtorch_npu",
        ROOT / "cli" / "__init__.py",
        submodule_search_locations=[str(ROOT / "cli")],
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mindtorch_npu"] = module
    spec.loader.exec_module(module)


_map_cli()

# The simulator reports every misuse of the API, and fails the call, in every test that uses it.
os.environ.setdefault("ACLSIM_STRICT", "error")


@pytest.fixture(autouse=True)
def _environment_as_before():
    """Opening an install exports what its libraries need; the next test starts without it."""
    before = dict(os.environ)
    yield
    if os.environ != before:
        for name in set(os.environ) - set(before):
            del os.environ[name]
        os.environ.update(before)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish():
    """What modules and the collection made lives to the end: no garbage collection walks it.

    torch, where they import it, computes on one thread."""
    gc.collect()
    gc.freeze()
    # Threads of torch's that wait for each other spin: on small tensors, beside other workers of
    # pytest, they cost five times what the work does. Those of mindtorch's kernels stay several.
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


def pytest_xdist_auto_num_workers():
    """Of `-n auto`: some tests wait, so three workers keep two cores busy."""
    return min(16, len(os.sched_getaffinity(0)) * 3 // 2 or 1)


# What `-m smoke` runs, in less than a minute: each package and the ways between them.
SMOKE = (
    *("seeds", "cli/spec", "cli/test_main.py", "cli/test_api.py", "mindtorch/test_dispatch.py"),
    *("mindtorch/test_functionalize.py", "aclnn_bindings/test_probe.py", "simulator/test_calls.py"),
    *("aclnn_bindings/test_call_by_name.py", "test_optional_imports.py"),
)

# Files whose tests start processes, a second of a processor and more each: together they are more
# than half of a run of everything. Each sixth of a file's tests runs with every change.
OF_PROCESSES = """
aclnn_bindings: broken_installs closed_in_use packages probe providers releases
aclnn_bindings/headers: headers_cache headers_truth
cli: bench_builds bench_command cannsim catalog_command check_builds check_command
    environment_sweep files_of_options git_bisect ops_command own_operators pytest_plugin
    reference_errors startup stubs_command
cli/conformance: chips compressed decomposition devices invariance lane planted_faults products
cli/fleet: driver host_faults
cli/grading: grade
cli/operators: atlas measured
layers: everything_is_judged fault_sweep faults files from_recording inprocess many_threads
    nothing_seen parent perfetto recording safety strict_layer unseen_programs unusual_programs
    verify
mindtorch: codes host_memory interrupts shared_memory
mindtorch/data: workers_end
mindtorch/distributed: distributed unknown_peers
mutation: score
simulator: capture collectives custom_operators frameworks fused_collectives product_kernels
    samples sharing torch_npu
"""
THINNED = {
    ROOT / "tests" / folder / f"test_{name}.py"
    for folder, names in re.findall(r"(\S+):((?: +\w+\n?)+)", OF_PROCESSES)
    for name in names.split()
}


def pytest_collection_modifyitems(config, items):
    """Only with `-m slow` run: what is so marked, of `sampled(n)` all but each n-th, and of THINNED
    five in six."""
    smoke = tuple(str(ROOT / "tests" / name) for name in SMOKE)
    for item in items:
        if str(item.path).startswith(smoke):
            item.add_marker("smoke")
    counted = Counter()
    for item in items:
        sampled = item.get_closest_marker("sampled")
        if sampled:
            function = item.nodeid.partition("[")[0]
            if counted[function] % sampled.args[0]:
                item.add_marker("slow")
            counted[function] += 1
    for item in items:
        if item.path in THINNED and not item.get_closest_marker("slow"):
            if counted[item.path] % 6:
                item.add_marker("slow")
            counted[item.path] += 1
    if not config.option.markexpr:
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="slow: run with -m slow"))
