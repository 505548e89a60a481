"""Modules that programs import by name print what torch's print: monitor, tools, queues, options."""

import contextlib
import importlib
import io
import os
import subprocess
import sys
import warnings

import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")

PROGRAMS = {
    "grouped products": """
F = torch.nn.functional
torch.manual_seed(0)
a, b = torch.randn(6, 16), torch.randn(2, 16, 16)
offs = torch.tensor([2, 6], dtype=torch.int32)
for x, y, o, more in ((a, b, offs, {}), (a.bfloat16(), b.bfloat16(), offs, {}), (b, b, None, {}),
        (b[:, :4], torch.randn(16, 16), torch.tensor([3, 16], dtype=torch.int32), {}),
        (a.t().contiguous().half(), torch.randn(6, 16).half(), offs, {}), (a, b, None, {}),
        (a, b, offs.long(), {}), (a, b, offs, {"bias": torch.ones(16)}), (a.int(), b.int(), offs, {}),
        (a, b, offs, {"out_dtype": torch.half}), (a, b.half(), offs, {}), (a[0], b, offs, {}),
        (a[:, :8], b, offs, {}), (a, b, offs[:1], {}), (torch.randn(6, 15), b[:, 1:], offs, {})):
    show(lambda: [F.grouped_mm(x, y, offs=o, **more)[..., :2, :2].float().round(decimals=1),
                  F.grouped_mm(x, y, offs=o, **more).shape])
a.requires_grad_(), b.requires_grad_()
(F.grouped_mm(a, b, offs=offs) * torch.ones(6, 16)).sum().backward()
print(a.grad[:2, :3], b.grad[:, :2, :2])
S, half = F.ScalingType, torch.tensor(0.5)
q, w = torch.ones(6, 16).to(torch.float8_e4m3fn), torch.ones(16, 16).to(torch.float8_e4m3fn).t()
show(lambda: F.scaled_mm(q, w, half, S.TensorWise, half, S.TensorWise)[0, :3])
rows = torch.arange(6.0).reshape(6, 1), S.RowWise, torch.ones(1, 16), S.RowWise
show(lambda: F.scaled_mm(q, w, *rows, output_dtype=torch.bfloat16)[:, 0])
""",
    "versions of flash attention": """
A = module("nn.attention")
show(lambda: A.activate_flash_attention_impl("x"))
A.register_flash_attention_impl("x", register_fn=lambda: None)
A.activate_flash_attention_impl("x")
print(A.current_flash_attention_impl(), A.list_flash_attention_impls())
class Handle:
    def remove(self): print("removed")
A.register_flash_attention_impl("y", register_fn=Handle)
A.activate_flash_attention_impl("y")
print(A.current_flash_attention_impl())
A.restore_flash_attention_impl()
print(A.current_flash_attention_impl())
""",
    "throughput": """
T = module("utils.throughput_benchmark")
for time in ({"time_us": 5}, {"time_ms": 5}, {"time_s": 5}, {"time_us": 5e6}, {}):
    show(lambda: T.format_time(**time))
bench = T.ThroughputBenchmark(torch.nn.Linear(2, 2))
show(bench.benchmark)
bench.add_input(torch.ones(1, 2))
stats = bench.benchmark(num_calling_threads=2, num_warmup_iters=1, num_iters=10)
print(bench.run_once(torch.ones(1, 2)).shape, stats.num_iters, stats.iters_per_second > 0)
print(str(stats).split(":")[0], len(str(stats).splitlines()))
""",
    "pickles": """
import datetime, io, os, pickle, tempfile, zipfile
P = module("utils.show_pickle")
value = {"a": [1, "é"], "d": datetime.date(2020, 1, 1)}
with tempfile.TemporaryDirectory() as folder:
    plain, packed = os.path.join(folder, "a.pkl"), os.path.join(folder, "a.zip")
    with open(plain, "wb") as file:
        pickle.dump(value, file, protocol=2)
    with zipfile.ZipFile(packed, "w") as archive:
        archive.write(plain, "archive/data.pkl")
    for name in (plain, packed + "@archive/data.pkl", packed + "@*/data.pkl"):
        out = io.StringIO()
        print(P.main(["show_pickle", name], out), out.getvalue())
print(P.FakeClass("a", "b"), P.FakeClass("a", "b")(1, 2), P.FakeObject("m", "n", (1,)))
""",
    "batons": """
import os, tempfile
B = module("utils.file_baton").FileBaton
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "lock")
    baton = B(path)
    print(baton.try_acquire(), B(path).try_acquire(), os.path.exists(path))
    baton.release()
    baton.wait()
    print(os.path.exists(path))
""",
    "events": """
import datetime
M = module("monitor")
events = []
handle = M.register_event_handler(lambda e: events.append((e.name, sorted(e.data.items()))))
every = [M.SUM, M.MEAN, M.COUNT, M.MAX, M.MIN, M.VALUE]
stat = M.Stat("a", every, datetime.timedelta(seconds=100), max_samples=3)
shown = lambda: sorted((k.name, v) for k, v in stat.get().items())
print(shown())
for i in range(5):
    stat.add(i)
print(stat.count, shown(), events, stat.name, M.STAT_EVENT, M.SUM, M.Aggregation.SUM is M.SUM)
event = M.Event(name="x", timestamp=datetime.datetime(2020, 1, 1), data={"a": 1})
M.log_event(event)
M.unregister_event_handler(handle)
M.log_event(event)
print(events[-1], len(events), event.timestamp)
""",
    "files": """
import types
S = module("serialization")
library = types.ModuleType("library")
library.__version__ = "1.2.x"
for least, strict in (((1, 2), True), ((1, 3), True), ((1, 2, 3), True), ((1, 2, 3), False)):
    show(lambda: S.check_module_version_greater_or_equal(library, least, strict))
show(lambda: S.StorageType("HalfStorage"))
show(lambda: S.StorageType("X"))
print(S.normalize_storage_type(torch.FloatStorage) is torch.FloatStorage)
print(torch.thread_safe_generator(), torch.functional.istft is torch.istft)
""",
    "names that are functions and modules": """
module("quantization.quantize"), module("quantization.fuse_modules"), module("autograd.variable")
module("autograd.gradcheck")
Q = torch.quantization
print(type(Q.quantize).__name__, type(Q.fuse_modules).__name__)
print(type(torch.autograd.gradcheck).__name__)
show(lambda: torch.autograd.variable(1))
""",
    "options": """
O = torch.nn.LinearCrossEntropyOptions
print(O())
for option in ({"acc_policy": "x"}, {"chunking_method": "aspect_ratio:2"}, {"batch_chunk_size": 0},
               {"chunking_method": "aspect_ratio:0"}, {"chunking_method": "x"}):
    show(lambda: O(**option))
print(torch.nn.Container(a=torch.nn.Linear(1, 1)))
show(lambda: torch.nn.functional.assert_int_or_pair([1, 2, 3], "x", "{} is bad"))
""",
    "names and places of arguments": """
nn, d = torch.nn, torch.distributions
torch.manual_seed(0)
print(nn.LazyConv2d(3, 2, 1, 0, 1, 1, True, "zeros")(torch.ones(1, 2, 4, 4)).shape)
print(nn.LazyConvTranspose1d(2, 3, 1, 0, 0, 1, True, 1, "zeros"))
print(nn.LazyConv1d(out_channels=2, kernel_size=3, padding=1, bias=False))
mixed = d.MixtureSameFamily(d.Categorical(torch.ones(2)), d.Normal(torch.zeros(2), torch.ones(2)))
print(mixed.log_prob(x=torch.tensor(0.0)), mixed.cdf(x=torch.tensor(0.0)))
print(d.HalfNormal(1.0).icdf(prob=torch.tensor(0.5)))
draw = d.Wishart(torch.tensor(3.0), torch.eye(2)).rsample(torch.Size(), max_try_correction=3)
print(draw.shape, module("distributions.one_hot_categorical").__all__)
with torch.random.fork_rng([], True, "a name", "devices"):
    print(torch.rand(1))
print(torch.rand(1))
show(lambda: nn.utils.rnn.pack_sequence([torch.ones(2)]).cuda())
print(module("nn.parallel.parallel_apply").get_a_var([1, {"a": (2, torch.ones(1))}]))
Group = module("utils.checkpoint").GraphExecGroup
with Group() as group:
    print(Group._get_current_group() is group)
    try:
        with Group(): pass
    except RuntimeError as error:
        print(str(error)[:40])
print(Group._get_current_group())
x = torch.tensor([1.0, 2.0], dtype=torch.double, requires_grad=True)
check = torch.autograd.gradgradcheck
print(check(lambda v: v ** 3, (x,), gen_non_contig_grad_outputs=True, check_fwd_over_rev=True))
""",
    "graphs": """
G = torch.autograd.graph
print(G.set_warn_on_accumulate_grad_stream_mismatch(True), G.set_override_stale_capture_stream(True))
for share in (0.5, 2.0, True, "a"):
    show(lambda: G.region_activation_memory_budget(share))
D = module("utils.dlpack").DLDeviceType
print({name: int(member) for name, member in D.__members__.items()})
print(module("multiprocessing.reductions").fd_id(0) is not None)
""",
}  # fmt: skip
SPAWNED = """
import os, pickle, signal, sys, time
import torch
import torch.multiprocessing as mp
def works(i, a): print("works", i, a, flush=True)
def raises(i):
    if i == 1: raise ValueError("no")
    time.sleep(5)
def leaves(i): sys.exit(3)
def is_ended(i): os.kill(os.getpid(), signal.SIGKILL)
if __name__ == "__main__":
    mp.spawn(works, args=(5,), nprocs=1)
    for function, count in ((raises, 2), (leaves, 1), (is_ended, 1)):
        try:
            mp.spawn(function, nprocs=count)
        except (mp.ProcessRaisedException, mp.ProcessExitedException) as error:
            lines = str(error).strip().splitlines()
            print(type(error).__name__, lines[0], lines[-1], error.error_index, error.error_pid > 0,
                  getattr(error, "exit_code", 0), getattr(error, "signal_name", 0),
                  type(pickle.loads(pickle.dumps(error))).__name__)
    context = mp.spawn(works, args=(1,), nprocs=1, join=False)
    print(type(context).__name__, len(context.pids()), context.join(), context.join())
"""


def printed(program, library):
    """What a program prints, with libraries' names made one."""
    out = io.StringIO()

    def show(function):
        try:
            print(function())
        except Exception as error:
            print(type(error).__name__, str(error).split("\n")[0])

    names = {
        "torch": library, "show": show,
        "module": lambda name: importlib.import_module(f"{library.__name__}.{name}"),
    }  # fmt: skip
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(program, names)
    return out.getvalue().replace("mindtorch", "torch")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_prints_what_it_prints_in_torch(name):
    assert printed(PROGRAMS[name], mindtorch) == printed(PROGRAMS[name], torch)


@pytest.mark.slow
def test_spawned_processes_end_as_in_torch(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(SPAWNED)
    plain = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    there = [sys.executable, str(file)]
    here = [sys.executable, "-m", "mindtorch_npu", "exec", "--", *there]
    runs = [
        subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env=env, check=True)
        for words, env in ((there, plain), (here, {**os.environ}))
    ]
    assert runs[0].stdout == runs[1].stdout
    assert "ProcessRaisedException" in runs[1].stdout


@pytest.mark.parametrize("window", [(-1, -1), (-1, 0), (1, 0)])
def test_packed_attention_is_attention_of_each_sequence(window):
    varlen = importlib.import_module("mindtorch.nn.attention.varlen")
    mindtorch.manual_seed(0)
    q, k, v = (mindtorch.randn(6, heads, 8) for heads in (4, 2, 2))
    ends = mindtorch.tensor([0, 2, 6], dtype=mindtorch.int32)
    request = varlen.AuxRequest(lse=True)
    options = {"window_size": window, "enable_gqa": True, "return_aux": request}
    result, sums = varlen.varlen_attn(q, k, v, ends, ends, 4, 4, **options)
    for start, stop in ((0, 2), (2, 6)):
        parts = (t[start:stop].transpose(0, 1).unsqueeze(0) for t in (q, k, v))
        place = mindtorch.arange(stop - start)
        far = place - place.unsqueeze(-1)
        seen = (far <= (window[1] if window[1] >= 0 else 9)) & (
            far >= (-window[0] if window[0] >= 0 else -9)
        )
        expected = mindtorch.nn.functional.scaled_dot_product_attention(
            *parts, attn_mask=seen, enable_gqa=True
        )
        mindtorch.testing.assert_close(result[start:stop], expected[0].transpose(0, 1))
    assert sums.shape == (4, 6)
    on_npu, _ = varlen.varlen_attn(*(t.npu() for t in (q, k, v, ends, ends)), 4, 4, **options)
    mindtorch.testing.assert_close(on_npu.cpu(), result, rtol=1e-3, atol=1e-3)
    with pytest.raises(ValueError, match="enable_gqa"):
        varlen.varlen_attn(q, k, v, ends, ends, 4, 4)


def test_queues_carry_tensors_and_a_report_names_the_machine():
    queue = importlib.import_module("mindtorch.multiprocessing.queue")
    ends = mindtorch.multiprocessing.Pipe()
    first, second = (queue.ConnectionWrapper(end) for end in ends)
    first.send(mindtorch.arange(3))
    assert second.recv().tolist() == [0, 1, 2]
    assert first.fileno() > 0
    report = importlib.import_module("mindtorch.utils.collect_env")
    theirs = importlib.import_module("torch.utils.collect_env")
    lines = [line.partition(":")[0] for line in report.env_info_fmt.splitlines()]
    assert report.SystemEnv._fields == theirs.SystemEnv._fields
    assert lines == [line.partition(":")[0] for line in theirs.env_info_fmt.strip().splitlines()]
    assert report.get_os(report.run) == theirs.get_os(theirs.run)
    assert report.run("exit 3")[0] == 3
    facts = dict.fromkeys(report.SystemEnv._fields) | {
        "pip_version": "pip3",
        "pip_packages": "a\nb",
    }
    text = report.pretty_str(report.SystemEnv(**facts))
    assert "[pip3] a\n[pip3] b" in text
    assert "OS: Could not collect" in text
