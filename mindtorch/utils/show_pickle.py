"""torch.utils.show_pickle: what a pickle holds, without making any of its objects.

python -m torch.utils.show_pickle model.pt@*/data.pkl
"""

from __future__ import annotations

import fnmatch
import pickle
import pprint
import struct
import sys
import zipfile
from collections.abc import Sequence
from typing import IO, Any

__all__ = ["DumpUnpickler", "FakeClass", "FakeObject", "main"]


class FakeObject:
    """What a pickle would make: the class by its names, its arguments, its state."""

    def __init__(self, module: str, name: str, args: Any) -> None:
        self.module, self.name, self.args = module, name, args
        self.state: Any = None

    def __repr__(self) -> str:
        state = "" if self.state is None else f"(state={self.state!r})"
        return f"{self.module}.{self.name}{self.args!r}{state}"

    def __setstate__(self, state: Any) -> None:
        self.state = state

    @staticmethod
    def pp_format(
        printer: Any, obj: Any, stream: IO[str], indent: int, allowance: int, context: Any,
        level: int,
    ) -> None:  # fmt: skip
        """Write the object as pprint would."""
        state = () if obj.state is None else (obj.state,)
        stream.write(f"{obj.module}.{obj.name}")
        printer._format(obj.args + state, stream, indent + 1, allowance + 1, context, level)


class FakeClass:
    """A class that a pickle names; a call makes a FakeObject."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name
        self.__dict__["__new__"] = self.fake_new

    def __repr__(self) -> str:
        return f"{self.module}.{self.name}"

    def __call__(self, *args: Any) -> FakeObject:
        return FakeObject(self.module, self.name, args)

    def fake_new(self, *args: Any) -> FakeObject:
        """As a call, where the pickle calls `__new__`."""
        return FakeObject(self.module, self.name, args[1:])


class DumpUnpickler(pickle._Unpickler):
    """Reads a pickle; classes and functions are FakeClass objects."""

    def __init__(self, file: IO[bytes], *, catch_invalid_utf8: bool = False, **kwargs: Any) -> None:
        super().__init__(file, **kwargs)
        self.catch_invalid_utf8 = catch_invalid_utf8

    def find_class(self, module: str, name: str) -> Any:
        return FakeClass(module, name)

    def persistent_load(self, pid: Any) -> FakeObject:
        return FakeObject("pers", "obj", (pid,))

    dispatch = dict(pickle._Unpickler.dispatch)

    def load_binunicode(self: Any) -> None:
        """A text; with `catch_invalid_utf8` one that is none is shown as such."""
        (length,) = struct.unpack("<I", self.read(4))
        raw = self.read(length)
        try:
            value: object = str(raw, "utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            if not self.catch_invalid_utf8:
                raise
            value = FakeObject("builtin", "UnicodeDecodeError", (str(error),))
        self.append(value)

    dispatch[pickle.BINUNICODE[0]] = load_binunicode

    @classmethod
    def dump(cls, in_stream: IO[bytes], out_stream: IO[str]) -> Any:
        """Write a stream's pickle to another, laid out; gives the value."""
        value = cls(in_stream).load()
        pprint.pprint(value, stream=out_stream)
        return value


def main(argv: Sequence[str], output_stream: IO[str] | None = None) -> int | None:
    """Show a pickle, or one of a zip's: `file.pkl`, `file.pt@archive/data.pkl`, `file.pt@*.pkl`.

    2 and a note for other arguments.
    """
    if len(argv) != 2:
        sys.stderr.write(f"usage: {argv[0]} FILE[@MEMBER], where MEMBER may be a pattern\n")
        return 2
    out = sys.stdout if output_stream is None else output_stream
    name, at, member = argv[1].partition("@")
    if not at:
        with open(name, "rb") as file:
            DumpUnpickler.dump(file, out)
        return None
    with zipfile.ZipFile(name) as archive:
        names = [n for n in archive.namelist() if fnmatch.fnmatch(n, member)]
        if not names:
            raise FileNotFoundError(f"Could not find member matching {member} in {name}")
        with archive.open(names[0]) as file:
            DumpUnpickler.dump(file, out)
    return None


if __name__ == "__main__":
    vars(pprint.PrettyPrinter)["_dispatch"][FakeObject.__repr__] = FakeObject.pp_format
    sys.exit(main(sys.argv))
