"""What launched processes tell, and where their output goes, as torch's do."""

import contextlib
import importlib
import io
import logging
import multiprocessing
import os
import re
import subprocess
import sys
import time
import warnings

import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")

METRICS = """
class Keeps(E.metrics.MetricHandler):
    def emit(self, data): print(type(data).__name__, data._fields, data[1:3], type(data.value))
def work(x): return 1 / x
t(lambda: E.metrics.MetricHandler())
t(lambda: E.metrics.put_metric("a", 1))
E.metrics.configure(Keeps(), "mine")
t(lambda: (E.metrics.put_metric("a", 1), E.metrics.put_metric("a", 1, "mine")))
f, g = E.metrics.prof(work), E.metrics.prof(group="mine")(work)
print(f.__name__, g(2), f(2))
t(lambda: g(0))
t(lambda: E.metrics.profile("mine")(work)(2))
t(lambda: E.metrics.publish_metric("mine", "b", 2))
E.metrics.configure(Keeps())
t(lambda: (f(1), E.metrics.put_metric("a", 1)))
E.metrics.configure(E.metrics.ConsoleMetricHandler())
t(lambda: E.metrics.put_metric("a", 1))
class Inner:
    @E.metrics.prof(group="mine")
    def method(self): return 3
print(Inner().method(), E.metrics.MetricsConfig().params, E.metrics.initialize_metrics())
print(E.metrics.getStream("mine").group_name, type(E.metrics.get_elapsed_time_ms(0.0)))
E.metrics.configure(E.metrics.NullMetricHandler())
"""
EVENTS = """
V = E.events
e = V.Event("n", V.EventSource.WORKER, metadata={"a": 1, "b": None})
print(e, repr(e), V.Event.deserialize(str(e)) == e, V.Event.deserialize(e) is e)
t(lambda: V.Event.deserialize("{}"))
t(lambda: V.record(e))
t(lambda: V.record(e, "nowhere"))
r = V.RdzvEvent("n", "id", "m", "h", 3, V.NodeState.FAILED, rank=2)
print(r, V.RdzvEvent.deserialize(str(r)) == r, list(V.NodeState), list(V.EventSource))
print(type(V.get_logging_handler()).__name__, type(V.get_logging_handler("console")).__name__)
V.construct_and_record_rdzv_event(run_id="i", message="m", node_state=V.NodeState.INIT)
handlers = E.events.handlers._log_handlers
class Shows(logging.Handler):
    def emit(self, record): print(re.sub(r'"(pid|hostname)": [^,]*', "", record.getMessage()))
handlers["dynamic_rendezvous"] = Shows()
def tells():
    V.construct_and_record_rdzv_event("i", "m", V.NodeState.INIT, rank=1, local_id=4)
    try:
        raise ValueError("x")
    except ValueError:
        V.construct_and_record_rdzv_event("i", "m", V.NodeState.FAILED, name="f", hostname="h")
tells()
V.record_rdzv_event(r)
"""
STREAMS = """
Std, to_map = E.multiprocessing.Std, E.multiprocessing.to_map
print(to_map(Std.OUT, 2), to_map({1: Std.ALL}, 3), list(Std), Std.ALL, Std.OUT | Std.ERR)
for s in ("0", "3", "0:3,1:0,2:1", "4", "0:3,", "x"):
    t(lambda: Std.from_str(s))
e = E.multiprocessing.SignalException("m", 15)
print(e, e.sigval)
t(lambda: E.multiprocessing.redirects.redirect("stdin", "x").__enter__())
"""
TIMERS = """
T = E.timer
class Client(T.TimerClient):
    def acquire(self, scope_id, expiration_time): print("begins", scope_id, expiration_time > 0)
    def release(self, scope_id): print("ends", scope_id)
def late():
    with T.expires(after=1): pass
t(late)
with T.expires(1, "mine", Client()): print("inside")
T.configure(Client())
t(late)
def fails():
    with T.expires(1, "f"): 1 / 0
t(fails)
q = multiprocessing.Queue()
s = T.LocalTimerServer(q, max_interval=0.05)
c = T.LocalTimerClient(q)
c.acquire("a", 5.0)
c.acquire("b", 9.0)
c.release("a")
while q.qsize() < 3: time.sleep(0.01)
requests = s._request_queue.get(9, 0.1)
print([(r.worker_id == os.getpid(), r.scope_id, r.expiration_time) for r in requests])
s.register_timers(requests)
print([[r.scope_id for r in v] for v in s.get_expired_timers(10).values()], s.get_expired_timers(8))
s.clear_timers({os.getpid()})
print(s.get_expired_timers(10), T.TimerRequest(1, "a", 2) == T.TimerRequest(1, "a", 2))
print(s._request_queue.get(2, 0.01), s._request_queue.size())
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
s.start()
q.put(T.TimerRequest(child.pid, "slow", time.time() - 1))
print(child.wait(20), s.stop())
"""


def printed(program, library):
    """What a program prints, with libraries' names made one."""
    out = io.StringIO()

    def t(function):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                print(function())
            except Exception as error:
                print(type(error).__name__, error)
        print([(w.category.__name__, str(w.message)) for w in seen])

    home = f"{library.__name__}.distributed.elastic"
    for name in ("events.handlers", "metrics", "timer", "multiprocessing.redirects"):
        importlib.import_module(f"{home}.{name}")
    names = {"E": importlib.import_module(home), "t": t, "__name__": "program",
             "multiprocessing": multiprocessing, "logging": logging, "os": os, "re": re,
             "subprocess": subprocess, "sys": sys, "time": time}  # fmt: skip
    loggers = [n for n in logging.root.manager.loggerDict if n.startswith("torchelastic-events")]
    for name in loggers:
        logging.getLogger(name).handlers.clear()
    with contextlib.redirect_stdout(out):
        exec(compile(program, "program.py", "exec"), names)
    text = re.sub(r"\[\d+\.\d+\]", "[time]", out.getvalue())
    return text.replace("mindtorch", "torch")


@pytest.mark.parametrize("program", [METRICS, EVENTS, STREAMS, TIMERS])
def test_launched_processes_tell_what_torchs_do(program):
    assert printed(program, mindtorch) == printed(program, torch)


def test_output_of_c_and_of_children_goes_to_a_file(tmp_path):
    module = "mindtorch.distributed.elastic.multiprocessing.redirects"
    code = f"""
import ctypes, os, sys
from {module} import redirect_stdout, redirect_stderr
print("before")
with redirect_stdout("out"), redirect_stderr("err"):
    print("python")
    print("error", file=sys.stderr)
    ctypes.CDLL(None).printf(b"c\\n")
    os.system("echo child; echo failed >&2")
print("after")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("before\nafter\n", "")
    assert sorted((tmp_path / "out").read_text().split()) == ["c", "child", "python"]
    assert (tmp_path / "err").read_text() == "error\nfailed\n"
