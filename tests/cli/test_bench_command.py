"""`bench`: statistics, verdicts, plot, and a run whose wrong results have no times."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from mindtorch_npu import main, render
from mindtorch_npu.commands.bench import command, rivals, runner, workloads
from mindtorch_npu.commands.bench.roofline import Box, Peaks, Point, label_box, svg
from mindtorch_npu.commands.bench.statistics import (
    SamplingLimits,
    collect,
    measure,
    summarize,
    warm_up,
)
from mindtorch_npu.commands.bench.timers import Clock
from mindtorch_npu.commands.bench.verdict import compare, doubt, with_baseline
from mindtorch_npu.conformance.operators.formulas import gradient

import mindtorch
from aclnn_bindings.install.library import bundled_simulator
from mindtorch.ops import OPS

simulator = pytest.mark.skipif(bundled_simulator() is None, reason="the simulator is not built")


def spread(center, width, n=40):
    return summarize([center + width * (i / n - 0.5) for i in range(n)])


@pytest.mark.parametrize(
    ("compared", "fail_on", "code"),
    [((True, True), None, 0), ((True, False), None, 0), ((False, False), None, 5),
     ((True, False), "slower", 5)],
)  # fmt: skip
def test_workloads_without_a_baseline_are_not_compared(compared, fail_on, code):
    work = SimpleNamespace(name="add")
    verdicts = {"device": compare(spread(1, 0.1), spread(1, 0.1))}
    rows = [SimpleNamespace(work=work, problem="", note="", verdicts=verdicts if c else {})
            for c in compared]  # fmt: skip
    assert command._code(rows, fail_on, "base.json") == code
    assert command._code(rows, None, None) == 0


def test_summary_orders_its_quantiles():
    t = spread(100, 10)
    assert t.least <= t.p20 <= t.q1 <= t.median <= t.q3 <= t.p80
    assert t.n == 40
    assert not t.noisy
    assert spread(100, 90).noisy


@pytest.mark.parametrize(
    ("ours", "theirs", "word"),
    [
        ((50, 2), (100, 2), "FASTER"),
        ((100, 2), (50, 2), "SLOWER"),
        ((100, 4), (100.5, 4), "SAME"),
        ((100, 30), (108, 30), "UNCLEAR"),
        ((100, 90), (100, 90), "UNCLEAR"),
    ],
)
def test_comparison_words(ours, theirs, word):
    found = compare(spread(*ours), spread(*theirs))
    assert found.word == word
    assert found.low <= found.ratio <= found.high


def test_difference_that_rounds_scatter_around_is_unclear():
    ours, theirs = spread(50, 2), spread(100, 2)
    assert compare(ours, theirs, [(50, 100)] * 5).word == "FASTER"
    assert compare(theirs, ours, [(100, 50)] * 5).word == "SLOWER"
    assert compare(ours, theirs, [(50, 100)] * 4 + [(101, 100)]).word == "UNCLEAR"


def test_a_side_against_itself_is_called_different_once_in_a_thousand_at_most():
    """Rounds drift by 2 %, samples have a long tail upwards, as times of programs have."""
    rng = np.random.default_rng(0)
    called = 0
    for _ in range(2000):
        drift = rng.normal(1, 0.02, (2, 5, 1))
        a, b = drift * (100 + rng.exponential(0.5, (2, 5, 12)))
        rounds = list(zip(np.median(a, 1), np.median(b, 1), strict=True))
        found = compare(summarize(list(a.flat)), summarize(list(b.flat)), rounds)
        called += found.word in ("FASTER", "SLOWER")
    assert called <= 2


@pytest.mark.parametrize("side", [{"n": 9}, {"waiting": 0.03}])
def test_a_baseline_is_not_called_slower_by_few_samples_or_on_a_loaded_machine(side):
    """Two runs cannot take turns: what another program took from one is not a difference."""
    ours, theirs = spread(100, 2), spread(50, 2)
    assert with_baseline(ours, theirs).word == "SLOWER"
    assert with_baseline(replace(ours, **side), theirs).word == "UNCLEAR"
    assert with_baseline(ours, replace(theirs, **side)).word == "UNCLEAR"


def test_times_of_a_loaded_machine_are_doubtful_and_few_samples_have_no_spread():
    busy = measure(lambda: (sum(range(20000)), 1.0)[1], SamplingLimits(0.0, 0.2))
    assert busy.waiting >= 0.0
    assert "waited for a core 40% of the time" in doubt({"e2e": replace(spread(5, 1), waiting=0.4)})
    spreads = [render.Cell("1 sample", "warn"), render.Cell("4 samples", "warn"), "2%"]
    assert [command._spread(spread(100, 4, n)) for n in (1, 4, 40)] == spreads
    assert command._time(spread(100, 4, 1)) == "98"


def test_a_run_that_waits_for_cores_says_so():
    """Three busy threads a core: each waits for its turn, and the kernel counts that."""
    program = "import sys\nwhile True: sum(range(9999))"
    others = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(3 * os.cpu_count())]
    try:
        loaded = measure(lambda: float(sum(range(20000))), SamplingLimits(0.0, 1.0))
    finally:
        for other in others:
            other.kill()
            other.wait()
    assert loaded.waiting > 0.02


def test_device_time_beyond_end_to_end_is_doubtful():
    assert "exceeds" in doubt({"device": spread(100, 2), "e2e": spread(50, 2)})
    assert doubt({"device": spread(50, 2), "e2e": spread(100, 2)}) == ""
    assert doubt({"device": spread(50, 2)}) == ""


def test_products_are_held_against_the_roof_of_their_dtype():
    peaks = Peaks(1e11, 4e12, {"float32": 1e12, "float16": 4e12})
    assert peaks.of("float32") == 1e12
    assert peaks.of("float16") == peaks.of("int8") == 4e12


def test_slow_calls_are_not_queued_by_the_thousand():
    calls = []

    def slow():
        calls.append(time.sleep(0.02))

    Clock(slow, lambda: None).device()
    assert len(calls) <= 4


def test_sampling_stops_when_times_agree_and_at_the_cap_when_they_do_not():
    calm = collect(lambda: 10.0, SamplingLimits(0.1, 5.0))
    assert len(calm) >= 20
    ticks = iter(range(10**9))
    wild = collect(lambda: float(next(ticks) % 7 + 1), SamplingLimits(0.05, 0.2))
    assert summarize(wild).noisy


def test_warm_up_ends_when_windows_agree():
    times = iter([90.0] * 3 + [40.0] * 3 + [10.0] * 30)
    warm_up(lambda: next(times), SamplingLimits(5.0, 1.0))
    assert next(times) == 10.0


def test_shapes_are_parsed_or_refused():
    assert workloads.parse_shapes("4x5,7,scalar") == [(4, 5), (7,), ()]
    with pytest.raises(workloads.WorkloadError, match="'4x'"):
        workloads.parse_shapes("4x")
    with pytest.raises(workloads.WorkloadError, match="3 shapes given, its tensors are 2"):
        workloads.shaped(OPS["matmul"], [(1,), (1,), (1,)], "")


def test_a_resized_output_follows_the_shapes_of_its_input():
    work = workloads.shaped(OPS["upsample_bilinear2d"], [(2, 3, 40, 30)], "")
    assert work.sample.args[1] == (60, 40)  # 4 x 3 becomes 6 x 4 in the sample


def test_arguments_are_set_by_name_and_end_the_workloads_name():
    op = OPS["upsample_linear1d"]
    values = workloads.parse_arguments(["output_size=9", "align_corners=True"])
    work = workloads.with_arguments(op, workloads.small(op, ""), values)
    assert work.sample.args[1:3] == ((9,), True)
    assert work.name.endswith("output_size=9 align_corners=True")
    add = workloads.with_arguments(OPS["add"], workloads.small(OPS["add"], ""), {"alpha": 2})
    assert add.sample.kwargs["alpha"] == 2


@pytest.mark.parametrize(
    ("texts", "words"),
    [(["alpha"], "give NAME=VALUE"), (["alfa=2"], "did you mean alpha"), (["other=2"], "--shapes")],
)
def test_arguments_that_no_op_takes_are_refused(texts, words):
    with pytest.raises(workloads.WorkloadError, match=words):
        workloads.with_arguments(
            OPS["add"], workloads.small(OPS["add"], ""), workloads.parse_arguments(texts)
        )


def test_a_stated_peak_is_a_column_of_its_own(capsys):
    words = ["add", "--shapes", "8x8", "--seconds", "0.05", "--peak", "0.001", "--arg", "alpha=2"]
    with pytest.raises(SystemExit) as ended:
        main.main(["bench", *words])
    output = capsys.readouterr().out
    assert ended.value.code == 0, output
    assert "of peak" in output
    assert "stated 0.001 TFLOP/s" in output
    assert "8x8,8x8 alpha=2" in output


def test_default_product_still_fits_together():
    work = workloads.default(OPS["matmul"], "float16")
    (m, k), (k2, n) = work.shapes
    assert k == k2
    assert m * n >= 1024 * 1024
    result = np.empty((m, n), np.float16)
    cost = workloads.cost(OPS["matmul"], runner.inputs(work, 0), [result])
    assert cost.flops == 2 * m * n * k
    assert cost.nbytes == 2 * (m * k + k * n + m * n)


def test_named_sets_give_workloads_of_known_ops():
    for name in workloads.SETS:
        assert {w.op for w in workloads.named_set(name, "")} <= set(OPS)
        assert len(workloads.named_set(name, "")) >= 3


def test_roofline_is_an_image_with_every_point():
    points = [Point("add <float32>", 0.08, 2e9), Point("matmul", 100.0, 5e11)]
    image = ElementTree.fromstring(svg(points, Peaks(1e11, 1e12), "title"))
    circles = image.findall("{http://www.w3.org/2000/svg}circle")
    assert len(circles) == 2
    assert "add <float32>" in "".join(image.itertext())


def test_labels_of_neighbouring_points_cover_neither_dots_nor_each_other():
    spots = [(300.0, 200.0), (302.0, 201.0), (303.0, 199.0), (740.0, 200.0), (741.0, 203.0)] * 4
    dots = [Box(x - 4, y - 4, x + 4, y + 4) for x, y in spots]
    taken = list(dots)
    for x, y in spots:
        box = label_box(x, y, "matmul gpt2 mlp", taken)
        assert not any(box.meets(other) for other in taken)
        assert 0 <= box.x0 < box.x1 <= 760
        taken.append(box)


def test_baseline_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "b.json"
    path.write_text("{}")
    with pytest.raises(rivals.NoRivalError, match="schema must be"):
        rivals.baseline(path)


def bench(tmp_path, *words, **environ):
    return subprocess.run(
        [sys.executable, "-m", "mindtorch_npu", "bench", "--seconds", "0.05", *words],
        capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environ},
    )  # fmt: skip


@simulator
def test_times_plot_and_baseline(tmp_path):
    words = ("add", "--shapes", "64x64", "--plot", "roof.svg", "--html", "page.html")
    done = bench(tmp_path, *words, "--json", "base.json", "--cold")
    assert done.returncode == 0, done.stdout + done.stderr
    for text in ("device µs", "host µs", "e2e µs", "cold µs", "GB/s", "of copy"):
        assert text in done.stdout
    row = json.loads((tmp_path / "base.json").read_text())["results"][0]
    assert row["name"] == "add float32 64x64,64x64"
    assert set(row["times"]) == {"device", "host", "e2e", "cold"}
    assert (tmp_path / "roof.svg").read_text().startswith("<svg")
    page = (tmp_path / "page.html").read_text()
    assert "<svg" in page
    assert "add float32 64x64,64x64" in page
    again = bench(tmp_path, *words, "--against", "base.json")
    assert again.returncode == 0, again.stdout + again.stderr
    assert any(w in again.stdout for w in ("SAME", "UNCLEAR", "FASTER", "SLOWER"))


@simulator
def test_slower_than_the_baseline_leaves_with_four_when_asked(tmp_path):
    words = ("add", "--shapes", "64x64")
    bench(tmp_path, *words, "--json", "base.json")
    data = json.loads((tmp_path / "base.json").read_text())
    for times in data["results"][0]["times"].values():
        times.update({k: v / 1e4 for k, v in times.items() if isinstance(v, float)})
    (tmp_path / "fast.json").write_text(json.dumps(data))
    done = bench(tmp_path, *words, "--against", "fast.json", "--fail-on", "slower")
    # Where other programs use the cores, a kind of time is not held against another run's.
    assert "SLOWER" in done.stdout or "waited for a core" in done.stdout
    assert done.returncode == (4 if "SLOWER" in done.stdout else 0), done.stdout + done.stderr


@simulator
def test_wrong_result_has_no_times(tmp_path):
    done = bench(tmp_path, "add", "--shapes", "64x64", ACLSIM_FAULTS="add:zeros")
    assert done.returncode == 1
    assert "wrong result" in done.stdout
    assert "Times" not in done.stdout


@simulator
def test_numpy_is_interleaved(tmp_path):
    done = bench(tmp_path, "add", "--shapes", "64x64", "--against", "numpy")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "against numpy" in done.stdout


@simulator
def test_host_only_times_small_shapes(tmp_path):
    done = bench(tmp_path, "add", "--host")
    assert done.returncode == 0, done.stdout
    assert "device µs" not in done.stdout


@pytest.mark.parametrize("words", [(), ("nonsense",), ("--set", "nonsense")])
def test_nothing_selected_is_a_usage_error(words):
    with pytest.raises(SystemExit) as ended:
        main.main(["bench", *words])
    assert ended.value.code == 2


@simulator
def test_an_aclnn_operator_is_timed_by_its_header(tmp_path):
    out = tmp_path / "times.json"
    done = subprocess.run(
        [sys.executable, "-m", "mindtorch_npu", "bench", "aclnnRmsNorm", "aclnnAdd", "--simulator",
         "--seconds", "0.05", "--json", str(out)],
        capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(out.read_text("utf-8"))["results"]
    assert [r["op"] for r in rows] == ["aclnnRmsNorm", "aclnnAdd"]
    assert all(r["times"]["e2e"]["median"] > 0 and not r["problem"] for r in rows)


def test_a_derivative_is_there_for_those_who_time_without_gradients() -> None:
    reference = gradient(lambda self, *, k: self * self * k, grad="gradOutput", of="self")
    with mindtorch.no_grad():
        (derivative,) = reference(gradOutput=np.ones(2), self=np.array([1.0, 2.0]), k=2.0)
        assert not mindtorch.is_grad_enabled()
    assert derivative.tolist() == [4.0, 8.0]
