"""Pipes of data give what torch's give: steps by their methods, orders, readers, errors."""

import contextlib
import importlib
import io
import warnings

import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")

COMMON = """
import copy, io, os, pickle
IterDataPipe, MapDataPipe, DataChunk, functional_datapipe, DataLoader = (
    getattr(torch.utils.data, n) for n in ("IterDataPipe", "MapDataPipe", "DataChunk",
                                           "functional_datapipe", "DataLoader"))
W, S = I.IterableWrapper, M.SequenceWrapper
def inc(x): return x + 1
def even(x): return x % 2 == 0
def add(a, b): return a + b
"""
PROGRAMS = {
    "values": """
x=W(range(5))
print(list(x), list(x), len(x), x, str(x), list(x.map(inc)), len(x.map(inc)))
print(list(x.filter(even)))
t(lambda: len(x.filter(even)))
t(lambda: x.nope)
""",
    "batches": """
x=W(range(7))
print(list(x.batch(3)), len(x.batch(3)), list(x.batch(3,drop_last=True)))
print(len(x.batch(3,True)), type(next(iter(x.batch(3)))).__name__)
print(list(x.batch(2).batch(2)), list(x.batch(2).batch(2).unbatch()))
print(list(x.batch(2).batch(2).unbatch(-1)))
print(list(x.batch(2).batch(2).unbatch(unbatch_level=2)))
t(lambda: list(x.batch(2).unbatch(3)))
t(lambda: x.batch(0))
t(lambda: list(x.unbatch(-2)))
""",
    "several": """
x=W(range(3))
y=W(range(10,14))
print(list(x.concat(y)), len(x.concat(y)), list(x.zip(y)), len(x.zip(y)), list(x.mux(y)))
print(len(x.mux(y)))
t(lambda: I.Concater())
t(lambda: x.concat([1]))
t(lambda: x.zip([1]))
""",
    "shuffle": """
torch.manual_seed(0)
x=W(range(10))
print(list(x.shuffle()), list(x.shuffle(buffer_size=3)), len(x.shuffle()))
s=x.shuffle()
s.set_seed(5)
print(list(s), list(s))
s.set_shuffle(False)
print(list(s))
t(lambda: x.shuffle(buffer_size=0))
print(list(x.batch(2).shuffle(unbatch_level=1).set_seed(1)))
""",
    "columns": """
d=W([(1,2),(3,4)])
print(list(d.map(inc,input_col=0)), list(d.map(add,input_col=[0,1])))
print(list(d.map(add,input_col=(0,1),output_col=-1)))
print(list(d.map(inc,input_col=0,output_col=1)))
t(lambda: d.map(inc,output_col=1))
t(lambda: d.map(inc,input_col=0,output_col=[0,1]))
e=W([{"a":1,"b":2}])
print(list(e.map(inc,input_col="a")), list(e.map(add,input_col=["a","b"])))
print(list(e.map(add,input_col=["a","b"],output_col="c")))
print(list(e.map(inc,input_col="a",output_col="z")))
print(list(d.filter(even,input_col=1)), list(W([[1,2],[3,4]]).map(add,input_col=[0,1])))
""",
    "fork": """
x=W(range(5))
a,b=x.fork(2)
print(list(a),list(b), len(a))
a,b=x.fork(2)
print(list(zip(a,b)), list(a))
c,=x.fork(1) if isinstance(x.fork(1),list) else [x.fork(1)]
print(list(c))
t(lambda: x.fork(0))
a,b=x.fork(2,buffer_size=2)
t(lambda: list(a))
t(lambda: x.fork(2,copy="x"))
p,q=W([[1],[2]]).fork(2,copy="deep")
print(list(p),list(q))
""",
    "demux": """
x=W(range(6))
a,b=x.demux(2,classifier_fn=inc_mod if 0 else (lambda v: v%2))
print(list(a),list(b))
a,b=x.demux(2,lambda v: None if v==3 else v%2, drop_none=True)
print(list(b),list(a))
a,b=x.demux(2,lambda v: 5)
t(lambda: list(a))
a,b=x.demux(2,lambda v: v%2,buffer_size=1)
t(lambda: list(a))
""",
    "shards": """
x=W(range(7))
s=x.sharding_filter()
print(list(s), len(s))
s.apply_sharding(3,1)
print(list(s), len(s))
t(lambda: s.apply_sharding(2,2))
print(list(I.Sampler(W([5,6,7]), sampler=torch.utils.data.SequentialSampler)))
t(lambda: I.Sampler(x.filter(even)))
""",
    "readers": """
x=W(range(4)).map(inc)
i=iter(x)
print(next(i))
j=iter(x)
print(next(j))
t(lambda: next(i))
print(list(j))
""",
    "loader": """
x=W([torch.ones(2),torch.zeros(2)])
print(list(x.batch(2).collate()), list(DataLoader(W(range(6)).map(inc), batch_size=4)))
""",
    "registered": """
@functional_datapipe("twice")
class Twice(IterDataPipe):
    def __init__(self, source): self.source=source
    def __iter__(self):
        for v in self.source: yield v; yield v
print(list(W([1,2]).twice()), "twice" in IterDataPipe.functions)
t(lambda: functional_datapipe("twice")(Twice))
t(lambda: functional_datapipe("q")(int))
t(lambda: len(W([1]).twice()))
""",
    "keys": """
m=S([1,2,3])
print(m[0], len(m), list(m.map(inc)), list(m.batch(2)), len(m.batch(2)))
print(list(m.concat(S([9])))[-1], list(m.zip(S([4,5,6]))), m)
t(lambda: m.batch(2)[2])
t(lambda: m.concat(S([9]))[7])
t(lambda: M.Concater())
t(lambda: m.zip(S([1]))[2])
torch.manual_seed(1)
print(list(m.shuffle()), list(m.shuffle(indices=[0,2]).set_seed(3)))
""",
    "chunks": """
c=DataChunk([1,2])
print(c, c.items, c.as_str(" "), list(c.raw_iterator()), len(c), c[0])
""",
    "copies": """
x=W(range(3)).map(inc)
y=pickle.loads(pickle.dumps(W([1,2])))
print(list(y), list(copy.deepcopy(W([3]))))
print([n for n in ("map","batch","zip","fork") if n in dir(x)])
""",
    "files": """
L, O, R = I.FileLister, I.FileOpener, I.StreamReader
print(list(L(".")), list(L(".", "*.txt", recursive=True)), list(L(["a", "x.txt"], ["*.txt"])))
print([os.path.relpath(p) for p in L(".", abspath=True)], list(W(["a"]).list_files(recursive=True)))
print(len(L(".", length=4)), L())
o = O(L(".", "*.txt", recursive=True))
print([(a, b.read()) for a, b in o], list(R(o)), list(o.read_from_stream(4)))
print(list(O(["x.txt"], "b").read_from_stream()), len(O([], length=3)))
print(list(W(["x.txt"]).open_files("rt", encoding="utf-8").read_from_stream(5)))
n, s = next(iter(O(["x.txt"])))
print(n, s, s.closed, s.readline(), list(s), s.name, s.close(), s.closed, s.close())
for f in (lambda: len(L(".")), lambda: len(O([])), lambda: list(L("nope")), lambda: O([], "w"),
          lambda: O([], "b", "utf-8"), lambda: list(O([1])), lambda: list(O(["nope"]))):
    t(f)
print(list(DataLoader(o.read_from_stream(3), batch_size=2)))
p = U.StreamWrapper(io.StringIO("abc"), name="n")
c = U.StreamWrapper(io.StringIO("q"), p)
p.autoclose()
print(p.closed, p.child_counter, "read" in dir(p), c.close(), p.closed, next(U.StreamWrapper(iter("a"))))
U.StreamWrapper.close_streams([{"a": (c, p)}, 3])
t(lambda: p.nope)
""",
    "groups": """
def key(v): return v % 3
x = W(range(10))
for o in ({}, {"group_size": 2}, {"keep_key": True, "group_size": 3}, {"buffer_size": 3},
          {"buffer_size": 4, "group_size": 4}, {"group_size": 0}, {"guaranteed_group_size": 2},
          {"buffer_size": 4, "group_size": 4, "drop_remaining": True},
          {"buffer_size": 5, "group_size": 4, "guaranteed_group_size": 2},
          {"buffer_size": 4, "group_size": 2, "guaranteed_group_size": 1, "keep_key": True},
          {"group_size": 2, "guaranteed_group_size": 3}):
    t(lambda: (list(x.groupby(key, **o)), type(next(iter(x.groupby(key, **o)))).__name__))
t(lambda: len(x.groupby(key)))
""",
    "chosen columns": """
def some(v, w=1): return v
def rest(*v): return len(v)
def named(v, *, k): return v
def least(v, *, k=1): return v
def none(): return 1
x = W([(1, 2, 3)])
for f in (inc, add, some, rest, named, least, none, str, len, max):
    for columns in (None, 0, (0, 1), [0, 1, 2]):
        t(lambda: list(x.map(f, input_col=columns)))
        t(lambda: list(x.filter(f, columns)))
for v in (3, (1,), (1, 2), ("a", 2), ("a", io.StringIO())):
    t(lambda: U.validate_pathname_binary_tuple(v))
""",
    "errors": """
class P(IterDataPipe):
    def __init__(self, e): self.e = e
    def __iter__(self):
        yield 1
        raise self.e
class Q(P):
    def __iter__(self): return iter([1 / self.e])
for e in (ValueError("x"), KeyError("k"), ValueError(), RuntimeError(3), OSError(2, "no")):
    t(lambda: list(P(e)))
    t(lambda: list(P(e).map(inc).batch(2)))
for f in (lambda: list(Q(0)), lambda: list(W([1, "a"]).map(inc)), lambda: W([1]).map(3),
          lambda: list(W([1, 2]).filter(inc)), lambda: list(W([1]).unbatch())):
    t(f)
m = W([1, 2]).map(inc)
i = iter(m)
next(i), next(iter(m))
t(lambda: next(i))
""",
}


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """A folder of a few files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a" / "b").mkdir(parents=True)
    for name in ("x.txt", "y.bin", "a/z.txt", "a/b/w.txt"):
        (tmp_path / name).write_text(name * 3)


def printed(program, library):
    """What a program prints, with libraries' names made one."""
    out = io.StringIO()

    def t(function):
        try:
            print(function())
        except Exception as error:
            print(type(error).__name__, error)

    pipes = f"{library.__name__}.utils.data.datapipes"
    names = {
        "torch": library, "t": t, "I": importlib.import_module(f"{pipes}.iter"),
        "M": importlib.import_module(f"{pipes}.map"),
        "U": importlib.import_module(f"{pipes}.utils.common"),
    }  # fmt: skip
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(COMMON + program, names)
    for kind in (names["IterDataPipe"], names["MapDataPipe"]):
        kind.functions.pop("twice", None)
    return out.getvalue().replace("mindtorch", "torch")


@pytest.mark.parametrize("name", PROGRAMS)
def test_pipes_give_what_torchs_give(name):
    assert printed(PROGRAMS[name], mindtorch) == printed(PROGRAMS[name], torch)
