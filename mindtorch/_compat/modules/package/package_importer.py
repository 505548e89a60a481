"""Owns PackageImporter: modules, objects and files of a package, apart from those of Python."""

from __future__ import annotations

import builtins
import importlib
import importlib.machinery
import importlib.util
import inspect
import io
import linecache
import os
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any, cast
from weakref import WeakValueDictionary

import numpy as np

from mindtorch._tensor import dtype as dt
from mindtorch.serialization._locations import Place
from mindtorch.serialization._records import PyTorchFileReader
from mindtorch.serialization._storages import Storages

from ._mangling import PackageMangler, demangle
from ._package_pickler import PackageUnpickler
from .file_structure_representation import Directory, tree_of_files
from .glob_group import GlobPattern
from .importer import Importer, imported_module
from .package_exporter import file_of

__all__ = ["PackageImporter"]

_ALWAYS_ALLOWED = ("numpy", "numpy.core", "numpy.core._multiarray_umath", "builtins")
_LOADED: MutableMapping[str, ModuleType] = WeakValueDictionary()  # by their names in packages
_getfile = inspect.getfile


def _getfile_of_packages(object: Any) -> str:
    module = _LOADED.get(object.__module__) if inspect.isclass(object) else None
    return _getfile(object) if module is None else str(module.__file__)


inspect.getfile = _getfile_of_packages


class DirectoryReader:
    """The records of a package that was unpacked into a folder."""

    def __init__(self, directory: str):
        self.directory = directory

    def get_record(self, name: str) -> bytes:
        """The bytes of a file."""
        return Path(self.directory, name).read_bytes()

    def has_record(self, path: str) -> bool:
        """Whether there is such a file."""
        return Path(self.directory, path).is_file()

    def get_all_records(self) -> list[str]:
        """The paths of all files."""
        files = (p for p in Path(self.directory).glob("**/*") if p.is_file())
        return [p.relative_to(self.directory).as_posix() for p in files]

    def serialization_id(self) -> str:
        """What tells files apart; nothing where there is none."""
        name = ".data/serialization_id"
        return self.get_record(name).decode() if self.has_record(name) else ""


class _Records(Storages):
    """The storages of a package."""

    def __init__(self, reader: Any, where: Place):
        super().__init__(where)
        self.reader = reader

    def read(self, key: str, dtype: dt.dtype | None, count: int) -> Any:
        return np.frombuffer(bytearray(self.reader.get_record(f".data/{key}.storage")), np.uint8)


class _Extern:
    pass


class _Place:
    """A module of a package: its file, and what is below it where it is a package itself."""

    def __init__(self, file: str | None, children: dict[str, _Place | _Extern] | None):
        self.file, self.children = file, children


class PackageImporter(Importer):
    """Loads a package from a path, a folder or a binary file.

    Modules are those of the package, each once for an importer, in `modules`; others only where
    the package says that they are external. ImportError for one that `module_allowed` refuses.
    """

    modules: MutableMapping[str, ModuleType]

    def __init__(
        self, file_or_buffer: Any, module_allowed: Callable[[str], bool] = lambda module_name: True
    ):
        self.zip_reader: Any
        self.filename = "<binary>"
        if isinstance(file_or_buffer, PyTorchFileReader):
            self.filename, self.zip_reader = "<pytorch_file_reader>", file_or_buffer
        elif isinstance(file_or_buffer, str | os.PathLike):
            self.filename = os.fspath(file_or_buffer)
            folder = os.path.isdir(self.filename)
            self.zip_reader = (DirectoryReader if folder else PyTorchFileReader)(self.filename)
        else:
            self.zip_reader = PyTorchFileReader(file_or_buffer)
        self.root = _Place(None, {})
        self.modules = {}
        external = self.zip_reader.get_record(".data/extern_modules").decode()
        self.extern_modules = external.splitlines()
        for name in self.extern_modules:
            if not module_allowed(name):
                raise ImportError(
                    f"package '{file_or_buffer}' needs the external module '{name}' but that module"
                    " has been disallowed"
                )
            self._add_extern(name)
        for file in self.zip_reader.get_all_records():
            self._add_file(file)
        self.patched_builtins = {**vars(builtins), "__import__": self.__import__}
        self.modules["torch_package_importer"] = cast("ModuleType", self)
        self._mangler = PackageMangler()
        self.storage_context: Any = None
        self.last_map_location: Place = None

    # The tree of modules.

    def _package(self, names: Sequence[str]) -> _Place | _Extern:
        place = self.root
        for index, name in enumerate(names):
            if place.children is None:
                raise ImportError(
                    f"inconsistent module structure. module {'.'.join(names[: index - 1])} is not a"
                    " package, but has submodules"
                )
            below = place.children.setdefault(name, _Place(None, {}))
            if isinstance(below, _Extern):
                return below
            place = below
        return place

    def _add_file(self, path: str) -> None:
        *folders, last = path.split("/")
        if len(folders) > 1 and folders[0] == ".data":
            return
        package = self._package(folders)
        if isinstance(package, _Extern):
            raise ImportError(
                f"inconsistent module structure. package contains a module file {path} that is a"
                " subpackage of a module marked external."
            )
        if last == "__init__.py":
            package.file = path
        elif last.endswith(".py") and package.children is not None:
            package.children[last.removesuffix(".py")] = _Place(path, None)

    def _add_extern(self, name: str) -> None:
        *outer, last = name.split(".")
        package = self._package(outer)
        if isinstance(package, _Place) and package.children is not None:
            package.children[last] = _Extern()

    # Imports.

    def import_module(self, module_name: str, package: object = None) -> ModuleType:
        """A module by its name, or by the name that an object of it has in `__module__`."""
        return self._import(self._mangler.demangle(module_name))

    def _import(self, name: str) -> ModuleType:
        if not isinstance(name, str):
            raise TypeError(f"module name must be str, not {type(name)}")
        if not name:
            raise ValueError("Empty module name")
        if name not in self.modules:
            return self._load(name)
        module = self.modules[name]
        if module is None:
            raise ModuleNotFoundError(f"import of {name} halted; None in sys.modules", name=name)
        if name == "os":
            self.modules["os.path"] = module.path
        return module

    def _load(self, name: str) -> ModuleType:
        parent, _, last = name.rpartition(".")
        if parent:
            outer = self._import(parent)
            if name in self.modules:
                return self.modules[name]
            if not hasattr(outer, "__path__"):
                raise ModuleNotFoundError(
                    f"No module named {name!r}; {parent!r} is not a package", name=name
                )
        module = self._found(name, parent)
        self._install(parent, last, module)
        return module

    def _owns(self, module: ModuleType) -> bool:
        loader: object = module.__loader__
        return loader is self

    def _install(self, parent: str, last: str, module: ModuleType) -> None:
        if parent and self._owns(self.modules[parent]):
            setattr(self.modules[parent], last, module)

    def _found(self, name: str, parent: str) -> ModuleType:
        place: _Place | _Extern = self.root
        for part in name.split("."):
            below = (place.children or {}).get(part) if isinstance(place, _Place) else None
            if below is None:
                if name in _ALWAYS_ALLOWED:
                    self.modules[name] = importlib.import_module(name)
                    return self.modules[name]
                raise ModuleNotFoundError(
                    f'No module named "{name}" in self-contained archive "{self.filename}" and the'
                    " module is also not in the list of allowed external modules:"
                    f" {self.extern_modules}",
                    name=name,
                )
            if isinstance(below, _Extern):
                self.modules[name] = imported_module(name)
                return self.modules[name]
            place = below
        assert isinstance(place, _Place)
        return self._made(name, place.file, place.children is not None, parent)

    def _made(self, name: str, file: str | None, is_package: bool, parent: str) -> ModuleType:
        spec = importlib.machinery.ModuleSpec(
            name, cast("Any", self), origin="<package_importer>", is_package=is_package
        )
        module = importlib.util.module_from_spec(spec)
        mangled = self._mangler.mangle(file) if file else None
        self.modules[name] = module
        module.__name__ = self._mangler.mangle(name)
        names: dict[str, Any] = vars(module)
        names.update(
            __spec__=spec, __loader__=self, __file__=mangled, __cached__=None,
            __builtins__=self.patched_builtins, __torch_package__=True,
        )  # fmt: skip
        _LOADED[module.__name__] = module
        self._install(parent, name.rpartition(".")[2], module)
        if file is not None and mangled is not None:
            linecache.lazycache(mangled, names)
            source = self.zip_reader.get_record(file)
            source = source.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            exec(compile(source, mangled, "exec", dont_inherit=True), names)
        return module

    def __import__(
        self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (),
        level: int = 0,
    ) -> ModuleType:  # fmt: skip
        """What an `import` in the package's code does."""
        whole = name
        if level:
            spec = (globals or {}).get("__spec__")
            package = (globals or {}).get("__package__") or (spec.parent if spec else "")
            whole = importlib.util.resolve_name("." * level + name, package)
        module = self._import(whole)
        if fromlist:
            return self._with_submodules(module, fromlist)
        if not level:
            return self._import(name.partition(".")[0])
        cut = len(name) - len(name.partition(".")[0])
        full = demangle(module.__name__)
        return self.modules[full[: len(full) - cut]] if name else module

    def _with_submodules(self, module: ModuleType, names: Sequence[str]) -> ModuleType:
        if not hasattr(module, "__path__"):
            return module
        for name in names:
            if name == "*":
                self._with_submodules(module, getattr(module, "__all__", ()))
            elif not hasattr(module, name):
                whole = f"{demangle(module.__name__)}.{name}"
                try:
                    self._import(whole)
                except ModuleNotFoundError as error:
                    if error.name != whole:
                        raise
        return module

    def get_source(self, module_name: str) -> str:
        """The text of a module."""
        module = self.import_module(demangle(module_name))
        text: str = self.zip_reader.get_record(demangle(str(module.__file__))).decode()
        return text

    # Files.

    def _package_module(self, package: Any) -> ModuleType:
        module = package if hasattr(package, "__spec__") else self.import_module(package)
        spec = module.__spec__
        if spec is None or spec.submodule_search_locations is None:
            name = repr(package if module is not package else getattr(spec, "name", package))
            raise TypeError(f"{name} is not a package")
        return cast("ModuleType", module)

    def _path(self, package: Any, resource: str | None = None) -> str:
        module = self._package_module(package)
        if not self._owns(module):
            raise AssertionError(f"package.__loader__ must be self, got {module.__loader__}")
        name = demangle(module.__name__)
        return name.replace(".", "/") if resource is None else file_of(name, resource)

    def load_binary(self, package: str, resource: str) -> bytes:
        """The bytes of a package's file; RuntimeError where there is none."""
        data: bytes = self.zip_reader.get_record(self._path(package, resource))
        return data

    def load_text(
        self, package: str, resource: str, encoding: str = "utf-8", errors: str = "strict"
    ) -> str:
        """The text of a package's file."""
        return self.load_binary(package, resource).decode(encoding, errors)

    def load_pickle(self, package: str, resource: str, map_location: Place = None) -> Any:
        """The object of a pickle, of the package's own classes; tensors go to `map_location`."""
        unpickler = PackageUnpickler(self, io.BytesIO(self.load_binary(package, resource)))
        objects: dict[object, object] = {}

        def reduce(parts: tuple[Any, ...]) -> object:
            key, function, arguments = parts if len(parts) == 3 else (object(), *parts)
            if key not in objects:
                objects[key] = function(self, *arguments)
            return objects[key]

        unpickler.storages, unpickler.reduce = _Records(self.zip_reader, map_location), reduce
        self.storage_context, self.last_map_location = unpickler.storages, map_location
        try:
            return unpickler.load()
        finally:
            self.storage_context = self.last_map_location = None

    def id(self) -> str:
        """The name of this importer in the names of its modules: `<torch_package_0>`."""
        return self._mangler.parent_name()

    def file_structure(
        self, *, include: GlobPattern = "**", exclude: GlobPattern = ()
    ) -> Directory:
        """The tree of the package's files whose paths match."""
        return tree_of_files(self.filename, self.zip_reader.get_all_records(), include, exclude)

    def python_version(self) -> str | None:
        """The Python that wrote the package."""
        name = ".data/python_version"
        known = self.zip_reader.has_record(name)
        return self.zip_reader.get_record(name).decode().strip() if known else None

    def get_resource_reader(self, fullname: str) -> _ResourceReader | None:
        """What importlib.resources reads the files of a package by; None for other modules."""
        try:
            package = self._package_module(fullname)
        except ImportError:
            return None
        return _ResourceReader(self, fullname) if self._owns(package) else None


class _ResourceReader:
    """Files of one package."""

    def __init__(self, importer: PackageImporter, fullname: str):
        self.importer, self.fullname = importer, fullname

    def open_resource(self, resource: str) -> io.BytesIO:
        """A file, open."""
        return io.BytesIO(self.importer.load_binary(self.fullname, resource))

    def resource_path(self, resource: str) -> str:
        """The path of a file of an unpacked package; FileNotFoundError."""
        reader = self.importer.zip_reader
        path = os.path.join(self.fullname, resource)
        if isinstance(reader, DirectoryReader) and reader.has_record(path):
            return os.path.join(reader.directory, path)
        raise FileNotFoundError

    def is_resource(self, name: str) -> bool:
        """Whether there is such a file."""
        known: bool = self.importer.zip_reader.has_record(self.importer._path(self.fullname, name))
        return known

    def contents(self) -> Iterator[str]:
        """The names of the files, and of the folders that have files."""
        folder, folders = PurePosixPath(self.importer._path(self.fullname)), set()
        for record in self.importer.zip_reader.get_all_records():
            path = PurePosixPath(record)
            if folder not in path.parents:
                continue
            *outer, name = path.relative_to(folder).parts
            if not outer:
                yield name
            elif outer[-1] not in folders:
                folders.add(outer[-1])
                yield outer[-1]
