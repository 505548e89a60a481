"""Stores of torch.distributed: of a process, of a file and over TCP; groups begin by them."""

import subprocess
import sys
from datetime import timedelta

import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="torch is the oracle")


def _of_a_store(lib):
    """What a store of one process keeps, and a group that begins by one."""
    store = lib.distributed.HashStore()
    store.set("a", "1")
    yield store.get("a"), store.add("n", 2), store.add("n", 3), store.get("n"), store.num_keys()
    yield store.check(["a"]), store.check(["b"]), store.delete_key("a"), store.delete_key("a")
    yield store.compare_set("c", "", "x"), store.compare_set("c", "no", "y"), store.get("c")
    for options in ({"world_size": 0, "rank": 0}, {"world_size": 1}):
        try:
            lib.distributed.init_process_group("gloo", store=store, **options)
        except Exception as error:
            yield type(error), str(error)
    lib.distributed.init_process_group("gloo", store=store, world_size=1, rank=0)
    yield lib.distributed.get_rank(), lib.distributed.get_world_size()
    lib.distributed.destroy_process_group()


def _of_two_ends(lib, kind, folder):
    """What one end of a store writes and the other reads."""
    dist = lib.distributed
    if kind == "hash":
        one = other = dist.HashStore()
    elif kind == "file":
        one, other = (dist.FileStore(str(folder / lib.__name__), 2) for _ in range(2))
    else:
        one = dist.TCPStore("127.0.0.1", 0, 1, True)
        other = dist.TCPStore("127.0.0.1", one.port, 1, False)
    prefixed = dist.PrefixStore("x", one)
    one.set("a", "1")
    yield other.get("a"), other.add("n", 2), one.add("n", 3), one.get("n"), other.check(["a", "b"])
    yield one.compare_set("q", "", "z"), other.compare_set("q", "z", "y"), one.get("q")
    yield one.delete_key("a"), other.delete_key("a"), other.check(["a"])
    prefixed.set("k", b"\xff")
    yield other.get("x/k"), prefixed.get("k"), prefixed.check(["k"])
    if kind != "file":
        one.append("q", "x")
        one.multi_set(["u", "v"], ["1", "2"])
        yield other.get("q"), other.multi_get(["u", "v"])
        one.queue_push("w", "x")
        one.queue_push("w", "y")
        yield one.queue_len("w"), one.queue_pop("w"), one.queue_pop("w"), one.queue_len("w")
        copy = one.clone()
        copy.set("c", "z")
        yield other.get("c")
    for wrong in (lambda: one.set(3, "a"), lambda: one.set("a", 3), lambda: one.add("a", "x"),
                  lambda: one.barrier(3, 1)):  # fmt: skip
        try:
            wrong()
        except TypeError as error:
            yield str(error).partition("Invoked")[0]
    for late in (one, prefixed):
        try:
            late.wait(["never"], timedelta(milliseconds=100))
        except Exception as error:
            yield type(error).__name__, str(error)
    yield one.barrier("all", 1), other.barrier("all", 1), prefixed.barrier("p", 1)
    try:
        one.barrier("two", 2, timedelta(milliseconds=50))
    except Exception as error:
        yield type(error).__name__, str(error)
    yield other.barrier("two", 2), one.check(["two"]), one.check(["two/last_member"])


@pytest.mark.parametrize("kind", ["hash", "file", "tcp"])
def test_both_ends_of_a_store_see_the_same(kind, tmp_path):
    ours = list(_of_two_ends(mindtorch, kind, tmp_path))
    assert ours == list(_of_two_ends(torch, kind, tmp_path))


_JOINED = """
import sys
from mindtorch import distributed as dist, ones
store = dist.FileStore(sys.argv[1], 2)
dist.init_process_group("gloo", store=store, rank=int(sys.argv[2]), world_size=2)
x = ones(1) * (dist.get_rank() + 1)
dist.all_reduce(x)
print(x.item())
"""


def test_processes_meet_by_a_store(tmp_path):
    command = [sys.executable, "-c", _JOINED, str(tmp_path / "store")]
    runs = [subprocess.Popen([*command, str(r)], stdout=subprocess.PIPE) for r in range(2)]
    assert [run.communicate(timeout=120)[0] for run in runs] == [b"3.0\n"] * 2


def test_a_store_of_one_process_begins_a_group():
    assert list(_of_a_store(mindtorch)) == list(_of_a_store(torch))


def test_a_second_group_is_refused_before_anybody_is_waited_for(tmp_path):
    dist = mindtorch.distributed
    dist.init_process_group("gloo", store=dist.HashStore(), world_size=1, rank=0)
    try:
        with pytest.raises(ValueError, match="default process group twice"):
            dist.init_process_group("gloo", f"file://{tmp_path / 'store'}", 5, 2, 1)
    finally:
        dist.destroy_process_group()
