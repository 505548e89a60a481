"""Names that packages mention are here, and modules of torch that have no file of their own."""

import importlib
from pathlib import Path
from types import ModuleType

import pytest

import mindtorch
from mindtorch._compat import absent_modules
from tests.software.scan import resolves

NAMES = Path(__file__).resolve().parent.parent / "software" / "names.txt"
# Of every 10,000 mentions in some 60 packages so many may be of names that are absent: attributes
# of what is refused, torch's own innards, and what has no counterpart (`__torch_dispatch__`).
ALLOWED = 15


def mentions():
    lines = [line.split() for line in NAMES.read_text(encoding="utf-8").splitlines()[1:]]
    return [(int(count), name) for count, *names in lines for name in names]


@pytest.mark.filterwarnings("ignore")
def test_names_that_packages_mention_are_here():
    rows = mentions()
    absent = [(n, name) for n, name in rows if not resolves(f"mindtorch.{name}")]
    share = sum(n for n, _ in absent) / sum(n for n, _ in rows)
    assert share * 10_000 <= ALLOWED, absent[:20]


def test_a_name_that_is_nowhere_does_not_resolve():
    assert not resolves("mindtorch.nn.functional.reluu")
    assert not resolves("mindtorch.no_such_module.name")


@pytest.mark.parametrize("name", sorted(absent_modules.SECOND))
def test_a_second_name_is_the_first_ones_names(name):
    second = importlib.import_module(f"mindtorch.{name}")
    first = importlib.import_module(f"mindtorch.{absent_modules.SECOND[name]}")
    shared = [n for n in getattr(first, "__all__", vars(first)) if n[0] != "_"]
    assert shared
    refused = [n for n in shared if n not in vars(first)]
    assert all(hasattr(second, n) for n in refused)
    shared = [n for n in shared if n in vars(first)]
    both = [(n, vars(first)[n], getattr(second, n)) for n in shared]
    # Modules below it, which another test may have imported, are its own.
    both = [row for row in both if not any(isinstance(v, ModuleType) for v in row)]
    shared = [n for n, _, _ in both]
    same = [n for n, a, b in both if a is b]
    # What the object that the module stands for has itself counts.
    assert same == shared or absent_modules.SECOND[name] == "backends"
    assert absent_modules.SECOND[name] == "backends" or (
        hasattr(second, "no_such_name") == hasattr(first, "no_such_name")
    )


def test_a_module_that_is_an_object_here_has_its_attributes():
    switches = importlib.import_module("mindtorch.backends.opt_einsum")
    assert switches.enabled is False
    assert switches.is_available() is False


def test_modules_to_be_refused_are_torchs():
    for name, names in absent_modules.refused_names().items():
        stems = [Path(folder).joinpath(*name.split(".")) for folder in mindtorch.__path__]
        whole = name not in ("", "*", "distributed", "ops.aten")
        assert not (whole and any(s.with_suffix(".py").exists() for s in stems)), (
            f"{name} has a file"
        )
        assert not whole or absent_modules.reason(name), name
        assert len(names) == len(set(names)), name


@pytest.mark.parametrize(
    "name", ["fx.annotate", "distributed.fsdp.wrap", "nn.quantizable", "nn.quantized.functional"]
)
def test_the_names_of_a_refused_module_are_torchs(name):
    pytest.importorskip("torch", reason="torch is the oracle")
    from tests.mindtorch import public_names

    module = importlib.import_module(f"mindtorch.{name}")
    theirs = set(public_names.public(importlib.import_module(f"torch.{name}")))
    assert theirs <= set(dir(module))


def test_a_refused_name_says_why_and_what():
    mkldnn = importlib.import_module("mindtorch.utils.mkldnn")
    with pytest.raises(NotImplementedError, match=r"torch\.utils\.mkldnn\.to_mkldnn: mindtorch"):
        mkldnn.to_mkldnn()
    with pytest.raises(NotImplementedError, match=r"DistributedOptimizer\.step: mindtorch"):
        mindtorch.distributed.optim.DistributedOptimizer.step()
    with pytest.raises(NotImplementedError, match=r"torch\.quantized_lstm_cell: .* quantised"):
        mindtorch.quantized_lstm_cell()
    with pytest.raises(NotImplementedError, match=r"torch\.ops\.aten\._pin_memory: "):
        mindtorch.ops.aten._pin_memory.default(mindtorch.ones(1))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        mkldnn.nothing  # noqa: B018
    assert not hasattr(mindtorch.ops.aten, "no_such_operator")


def test_a_refused_error_can_be_caught():
    assert issubclass(mindtorch.AcceleratorError, Exception)
    assert issubclass(mindtorch.JITException, Exception)


@pytest.mark.parametrize("dtype", ["qint8", "uint4", "int3", "bits16", "quint4x2"])
def test_types_that_are_only_named_tell_of_themselves_and_make_no_tensor(dtype):
    torch = pytest.importorskip("torch", reason="torch is the oracle")

    there, here = getattr(torch, dtype), getattr(mindtorch, dtype)
    for question in ("itemsize", "is_floating_point", "is_complex"):
        assert getattr(here, question) == getattr(there, question), question
    if dtype in ("uint4", "int3"):
        assert here.is_signed == there.is_signed
    else:
        for one in (here, there):
            with pytest.raises(RuntimeError):
                one.is_signed  # noqa: B018
    assert repr(here) == repr(there)
    with pytest.raises(NotImplementedError, match=f"torch.{dtype}: mindtorch has no tensors"):
        mindtorch.zeros(2, dtype=here)


def test_all_lists_what_torchs_lists_of_what_is_here():
    torch = pytest.importorskip("torch", reason="torch is the oracle")

    there = {n for n in torch.__all__ if hasattr(mindtorch, n)} - mindtorch._SUBMODULES
    assert set(mindtorch.__all__) == there
    assert len(there) > 850


def test_a_star_brings_what_a_program_uses():
    scope = {}
    exec("from mindtorch import *", scope)
    assert scope["ones"](2).tolist() == [1.0, 1.0]
    assert {"zeros", "einsum", "float32", "Tensor", "no_grad", "manual_seed", "save"} <= set(scope)
    assert "strided" not in scope
    assert "nn" not in scope
