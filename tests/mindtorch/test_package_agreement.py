"""Packages of code, objects and files are written and read as torch does."""

import importlib
import inspect
import io
import logging
import sys
import zipfile

import pytest
from agreement import agree

torch = pytest.importorskip("torch", reason="torch 2.13 is the reference")

SOURCES = {
    "zoo/__init__.py": "from . import layers\nVERSION = 3\n",
    "zoo/layers.py": (
        "import os.path\nimport heavy\nfrom heavy import plot\n\nclass Gate:\n    def __init__(self, w):"
        "\n        self.w = w\n    class Inner:\n        pass\n    def draw(self):\n"
        "        return heavy.plot(self.w)\n\ndef double(x):\n    return x * 2\n"
    ),
    "zoo/model.py": "from .layers import Gate\nfrom zoo import VERSION, layers\nimport zoo.layers\n",
    "heavy.py": "import sys\n__import__('zlib')\ndef plot(x):\n    return 'a plot'\n",
}


@pytest.fixture(autouse=True)
def zoo(tmp_path, monkeypatch):
    """Modules of a user, found by import."""
    for name, text in SOURCES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    for name in [n for n in sys.modules if n.split(".")[0] in ("zoo", "heavy")]:
        monkeypatch.delitem(sys.modules, name)
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)
    for name in [n for n in sys.modules if n.split(".")[0] in ("zoo", "heavy")]:
        del sys.modules[name]


def package_of(t):
    return importlib.import_module(f"{t.__name__}.package")


def packed(t, rules, protocol=3, debug=False):
    """A package of an object of the zoo, open, and its exporter."""
    file, gate = io.BytesIO(), importlib.import_module("zoo.layers").Gate
    with package_of(t).PackageExporter(file, debug=debug) as exporter:
        rules(exporter)
        whole = t.arange(6.0)
        items = [gate(whole), whole[2:].view(2, 2), t.float32, t.nn.functional.relu, {1}]
        exporter.save_pickle("objects", "gate.pkl", items, pickle_protocol=protocol)
        exporter.save_pickle("objects", "w.pkl", whole)
        exporter.save_text("objects", "notes.txt", "three days")
        exporter.save_source_string("made.up", "import zoo.model\nK = zoo.model.VERSION\n")
    file.seek(0)
    return file, exporter


def usual(exporter):
    exporter.intern("zoo.**")
    exporter.mock("heavy")


RULES = {
    "none": lambda e: None,
    "denied": lambda e: (e.intern("zoo.**"), e.deny("heavy*")),
    "the system": lambda e: e.intern(["zoo.**", "heavy"]),
    "mocked and used": lambda e: e.mock("zoo.**"),
    "no match": lambda e: (usual(e), e.extern("nothing.**", allow_empty=False)),
    "excluded": lambda e: (e.intern("zoo.**", exclude="zoo.layers"), e.mock("heavy")),
    "segment": lambda e: e.intern("zoo**"),
}


@pytest.mark.parametrize("debug", [False, True], ids=["short", "with paths"])
@pytest.mark.parametrize("rules", RULES.values(), ids=RULES.keys())
def test_what_no_rule_packs_is_refused(rules, debug):
    def run(t):
        try:
            packed(t, rules, debug=debug)
        except Exception as error:
            return type(error).__name__, str(error)

    agree(run)


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_modules_and_what_needs_them_are_known(protocol):
    def run(t):
        seen = []

        def rules(exporter):
            usual(exporter)
            exporter.register_intern_hook(lambda e, name: seen.append(("intern", name)))
            exporter.register_mock_hook(lambda e, name: seen.append(("mock", name)))
            exporter.register_extern_hook(lambda e, name: seen.append(("extern", name))).remove()

        file, e = packed(t, rules, protocol)
        return (
            e.interned_modules(), e.mocked_modules(), e.externed_modules(), e.denied_modules(),
            e.dependency_graph_string(), e.get_rdeps("zoo.layers"), e.get_rdeps("none"), seen,
            zipfile.ZipFile(file).namelist(), e.dependency_graph.first_path("heavy"),
        )  # fmt: skip

    agree(run)


def test_a_package_gives_its_own_modules_objects_and_files():
    def run(t):
        importer = package_of(t).PackageImporter(packed(t, usual)[0])
        gate, part, dtype, function, numbers = importer.load_pickle("objects", "gate.pkl")
        gate.w[3] = 9
        layers = importer.import_module("zoo.layers")
        reader = importer.get_resource_reader("objects")
        return (
            type(gate).__module__.partition(".")[2], layers.Gate is type(gate), part, str(dtype),
            function is t.nn.functional.relu, numbers, importer.load_pickle("objects", "w.pkl"),
            importer.import_module("made.up").K, importer.load_text("objects", "notes.txt"),
            package_of(t).is_from_package(gate), package_of(t).is_from_package(layers),
            package_of(t).is_from_package(part), inspect.getsource(type(gate)),
            importer.get_source(layers.__name__), sorted(reader.contents()), reader.is_resource("x"),
            str(importer.file_structure(exclude=".data/*")), importer.python_version(),
            importer.file_structure().has_file("zoo/model.py"), layers.double(4),
            importer.import_module("torch.nn") is t.nn, layers.__file__.partition(".")[2],
        )  # fmt: skip

    agree(run)


ASKED = {
    "a mocked call": lambda t, i: i.load_pickle("objects", "gate.pkl")[0].draw(),
    "a mocked object": lambda t, i: i.import_module("heavy").x + 1,
    "no module": lambda t, i: i.import_module("zoo.nothing"),
    "no package": lambda t, i: i.import_module("zoo.layers.x"),
    "not external": lambda t, i: i.import_module("calendar"),
    "no pickle": lambda t, i: i.load_pickle("objects", "none.pkl"),
    "no folder": lambda t, i: i.load_text("zoo.layers", "x"),
    "a path": lambda t, i: i.load_text("objects", "x/y"),
    "no name": lambda t, i: i.import_module(""),
    "disallowed": lambda t, i: (
        package_of(t).PackageImporter(packed(t, usual)[0], lambda n: False).K
    ),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED.keys())
def test_what_a_package_has_not_is_refused(ask):
    agree(lambda t: ask(t, package_of(t).PackageImporter(packed(t, usual)[0])), text=False)


def test_packed_objects_are_packed_again_by_their_importer():
    def run(t, *importers):
        package = package_of(t)
        file, importer = io.BytesIO(), package.PackageImporter(packed(t, usual)[0])
        gate = importer.load_pickle("objects", "gate.pkl")[0]
        choice = (importer, package.sys_importer) if importers else package.sys_importer
        with package.PackageExporter(file, importer=choice) as exporter:
            usual(exporter)
            exporter.save_pickle("again", "gate.pkl", [gate, gate.Inner(), gate.Inner])
        file.seek(0)
        again = package.PackageImporter(file).load_pickle("again", "gate.pkl")
        return again[0].w, type(again[1]) is again[2], exporter.interned_modules()

    agree(lambda t: run(t, True))
    with pytest.raises(Exception, match=r"it's not found as <torch_package_\d+>.zoo.layers.Gate"):
        run(importlib.import_module("mindtorch"))


PATTERNS = ["a.**", "a.*", "b?.c*d.**", ["a", "*.b"], "**"]


@pytest.mark.parametrize("pattern", PATTERNS, ids=map(str, PATTERNS))
def test_patterns_match_names(pattern):
    names = ["a", "a.b", "a.b.c", "b?.cd", "b?.cxd.e.f", "ab"]

    def run(t):
        group = package_of(t).GlobGroup(pattern, exclude="a.b.c")
        return str(group), [group.matches(name) for name in names]

    agree(run)


def test_graph_modules_are_packed_with_their_code():
    def run(t):
        module = t.nn.Sequential(t.nn.Linear(2, 2), t.nn.ReLU())
        graph, file = t.fx.symbolic_trace(module), io.BytesIO()
        with package_of(t).PackageExporter(file) as exporter:
            exporter.save_pickle("m", "graph.pkl", graph)
        file.seek(0)
        again = package_of(t).PackageImporter(file).load_pickle("m", "graph.pkl")
        same = t.equal(again(t.ones(1, 2)), module(t.ones(1, 2)))
        return exporter.interned_modules(), again.code, type(again).__name__, same

    agree(run)


def test_a_scripted_module_is_not_packed():
    def run(t):
        with package_of(t).PackageExporter(io.BytesIO()) as exporter:
            exporter.save_pickle("m", "m.pkl", t.jit.script(t.nn.Linear(2, 2)))

    agree(run)
