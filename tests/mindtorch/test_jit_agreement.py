"""What torch.jit gives is shown, runs, is saved and refuses as torch's, though it runs as Python."""

import io
import re
import warnings
from typing import Optional, Union

import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")

SOURCE = """
from typing import Dict, List, Optional, Tuple

def plus(x, n: int = 2):
    return x + n

def many(x, m: str = "a", k: float = 0.1, j: float = 2, o: Optional[List[int]] = None,
         d: Optional[Dict[str, lib.Tensor]] = None, b: bool = True) -> Tuple[int, lib.Tensor]:
    return 1, x

def branch(x):
    return x * 2 if x.sum() > 0 else x - 1

def scaled(x):
    return x * float(x.sum()) + x.sum().item()

def fails(l: List[int], d: Dict[str, int], how: int):
    if how == 0:
        return l[5]
    if how == 1:
        return d["x"]
    if how == 2:
        return 1 // len(l)
    if how == 3:
        raise ValueError("bad " + str(how))
    assert how < 4, "too much"
    return l.index(7)

class Dropping(lib.nn.Module):
    @lib.jit.unused
    def dropped(self, x):
        return x * {1, 2}

    @lib.jit.ignore(drop=True)
    def logged(self, x: lib.Tensor) -> None:
        print(x)

    def forward(self, x, how: int):
        if how == 0:
            return self.dropped(x)
        if how == 1:
            self.logged(x)
        return x

class Inner(lib.nn.Module):
    def forward(self, x):
        if lib.jit.is_scripting():
            return x + 1
        return x + 2 if lib.jit.is_tracing() else x

class Net(lib.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = lib.nn.Linear(2, 3)
        self.drop = lib.nn.Dropout(0.5)
        self.k = 4
        self.calls = lib.jit.Attribute(0, int)

    def forward(self, x):
        return self.drop(lib.relu(self.lin(x))) * self.k

    def twice(self, x):
        return self.lin.weight.sum() * x

    @lib.jit.export
    def other(self, x):
        return x + self.k
"""


def program(lib, path):
    """The names of a file of functions and modules, of one library."""
    path.write_text(SOURCE)
    scope = {"lib": lib, "__name__": f"jit_program_of_{lib.__name__}"}
    exec(compile(SOURCE, str(path), "exec"), scope)
    return scope


def story(lib, path):
    jit, scope = lib.jit, program(lib, path)
    ones, two = lib.ones(2), lib.ones(4, 2)

    def refusal(call, *args):
        try:
            call(*args)
        except Exception as error:
            return type(error).__name__, str(error).splitlines()[0]
        return "accepted"

    yield jit.script(scope["many"]).schema
    lib.manual_seed(0)
    net = scope["Net"]()
    scripted = jit.script(net)
    yield scripted, isinstance(scripted, jit.ScriptModule), scripted.original_name, scripted.calls
    yield type(scripted).__name__, scripted.lin.original_name, list(scripted.state_dict())
    yield scripted.other(ones), [n for n, _ in scripted.named_modules()]
    scripted.eval()
    scripted.k = 5
    yield scripted.training, net.training, net.k, scripted.k, scripted.drop.training
    yield jit.script(scripted) is scripted
    yield lib.equal(scripted(two), net.eval()(two) / 4 * 5)
    scripted(two).sum().backward()
    yield net.lin.bias.grad is not None
    for name in ("get_buffer", "requires_grad_", "register_forward_hook", "to_empty"):
        yield refusal(getattr(scripted, name), "a")
    hooked = lib.nn.Linear(2, 2)
    hooked.register_full_backward_hook(print)
    yield refusal(jit.trace, lib.nn.Sequential(hooked), two)
    yield jit.script(lib.nn.ModuleList([lib.nn.ReLU()] * 2))
    frozen = jit.freeze(scripted.eval(), preserved_attrs=["k", "other"])
    yield frozen, type(frozen).__name__, list(frozen.state_dict()), frozen.k, frozen.other(ones)
    yield [hasattr(frozen, name) for name in ("lin", "calls", "forward")]
    yield lib.equal(frozen(two), scripted(two)), refusal(jit.freeze, scripted, ["zz"])
    buffer = io.BytesIO()
    jit.save(jit.freeze(jit.script(lib.nn.ReLU().eval())), buffer)
    buffer.seek(0)
    yield jit.load(buffer)(-two)
    yield refusal(lambda: scripted.nothing), refusal(jit.freeze, jit.script(net.train()))
    layers = lib.nn.Sequential(lib.nn.Linear(2, 3), lib.nn.ReLU())
    traced = jit.trace(layers, lib.ones(1, 2))
    yield traced, type(traced).__name__, lib.equal(traced(two), layers(two))
    yield list(traced.state_dict()), [c.original_name for c in traced.children()]
    buffer = io.BytesIO()
    plain = jit.script(layers)
    jit.save(plain, buffer, _extra_files={"note": "text"})
    buffer.seek(0)
    files = {"note": ""}
    loaded = jit.load(buffer, _extra_files=files)
    yield loaded, lib.equal(loaded(two), layers(two)), files
    again = io.BytesIO()
    traced.save(str(path.with_name(f"{lib.__name__}.pt")))
    jit.save(traced, again)
    again.seek(0)
    reloaded = jit.load(again)
    yield reloaded, lib.equal(reloaded(two), layers(two))
    yield lib.equal(jit.load(str(path.with_name(f"{lib.__name__}.pt")))(two), layers(two))
    yield refusal(jit.load, "/no/file.pt")
    function = jit.script(scope["plus"])
    yield type(function), function.name, function(ones, 3), function(ones)
    yield refusal(function), refusal(function, ones, 1, 2)
    many = jit.script(scope["many"])
    for args, named in (
        ((3,), {}), ((ones, 1), {}), ((ones,), {"o": [1.5]}), ((ones,), {"d": {"a": 1}}),
        ((ones,), {"d": {1: ones}}), ((ones,), {"k": "a"}), ((ones,), {"zz": 1}), ((ones,), {"x": ones}),
        ((ones,), {"k": 1, "o": (1, True), "b": None, "m": b"a", "d": {}}),
    ):  # fmt: skip
        try:
            yield many(*args, **named)
        except RuntimeError as error:
            yield str(error)
    failing = jit.script(scope["fails"])
    yield failing.schema
    for how in range(6):
        try:
            yield failing([], {}, how)
        except Exception as error:
            yield type(error).__name__, isinstance(error, jit.Error), str(error)
    dropping = jit.script(scope["Dropping"]())
    for how in range(3):
        try:
            yield dropping(ones, how)
        except Exception as error:
            yield type(error).__name__, str(error)
    yield refusal(scripted), refusal(scripted, 3), refusal(scripted.other, ones, 1)
    branch = jit.trace(scope["branch"], ones)
    yield branch(ones), branch(-ones), type(branch)
    yield jit.trace(scope["scaled"], ones)(ones * 3)
    inner = scope["Inner"]()
    yield jit.script(inner)(ones), jit.trace(inner, ones)(ones), inner(ones)
    future = jit.fork(scope["plus"], ones)
    yield type(future).__name__, jit.wait(future)
    yield jit.annotate(list[int], [1]), jit.Attribute(1, int)
    pairs = (
        ([1], list[int]), ([1.5], list[int]), ({"a": 1}, dict[str, int]), ((1, "a"), tuple[int, str]),
        (None, Optional[int]), (1, Union[int, str]), ("a", (int, float)),  # noqa: UP007, UP045
    )  # fmt: skip
    yield [jit.isinstance(value, kind) for value, kind in pairs]
    yield jit.is_scripting(), jit.is_tracing()
    unread = {"lib": lib, "__name__": "unread"}
    exec("def f(x): return x\nclass M(lib.nn.Module):\n    def forward(self, x): return x", unread)
    for code in (unread["f"], unread["M"](), len):
        yield re.sub(" at 0x[0-9a-f]+", "", str(refusal(jit.script, code)))
    yield refusal(jit.script, 3), refusal(jit.trace, scope["plus"], "a")
    yield refusal(jit.trace, lambda x: "s", ones)
    yield refusal(jit.trace, lambda x: {"a": x}, ones)
    both = jit.trace_module(scope["Net"]().eval(), {"forward": two, "twice": ones})
    yield both.twice.code, both.code
    yield jit.trace(lambda d: d["a"][1] * 2, ({"a": {1: ones}},)).code
    pair = jit.trace(lambda a, b: a + b.numel(), [ones, ones])
    yield pair.code, pair(ones, ones), refusal(jit.trace, scope["plus"], 3)
    casts = jit.trace(
        lambda x: (x.float() + x.cpu(), x.int(), x.norm() > 1, (x > 1) & (x < 3)), ones
    )
    yield re.sub("torch.(linalg_vector_)?norm", "", casts.code)
    one, two = (iter(range(9)) for _ in "12")
    for function in (lambda x: x + next(one), lambda x: x * 2 if next(two) % 2 else x + 1):
        try:
            jit.trace(function, ones)
        except jit.TracingCheckError as error:
            yield str(error).partition("First diverging")[0].replace(__file__, "")
    yield refusal(jit.trace, lambda x: x.view(2) * 2, ones)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        jit.trace(scope["branch"], ones)
        jit.trace(lambda x: x[: x.size(0) - 1], (ones,))
        lib.manual_seed(0)
        jit.trace(lambda x: x + lib.rand(2), ones)
        jit.trace(lambda x: x * float(x.sum()) + len(x), ones)
        jit.trace(lib.relu, ones, check_trace=False)
        jit.trace_module(lib.nn.ReLU(), {"forward": jit.trace(lib.nn.ReLU(), ones)(ones)})
    yield [
        (
            w.category.__name__,
            str(w.message).replace(__file__, ""),
            w.category is DeprecationWarning and w.filename == __file__,
        )
        for w in caught
    ]


@pytest.mark.filterwarnings("ignore")
def test_scripted_and_traced_programs_are_those_of_torch(tmp_path):
    path = tmp_path / "program.py"
    for ours, theirs in zip(story(mindtorch, path), story(torch, path), strict=True):
        assert str(ours).replace("mindtorch", "torch") == str(theirs)
