"""Owns PyTorchFileReader and PyTorchFileWriter: the records of a file of tensors, by name."""

from __future__ import annotations

import os
import sys
import zipfile
from typing import Any, BinaryIO

import mindtorch

from .._tensor.dtype import dtype as DType
from .._tensor.tensor import Tensor
from ._legacy import damaged_archive, damaged_zip
from ._writing import aligned, fingerprint


class PyTorchFileReader:
    """Reads records of a zip file of tensors: a path, or an open file that can be sought.

    RuntimeError for what is no such file, and for a record that is not there.
    """

    def __init__(self, name_or_buffer: Any):
        source = name_or_buffer
        if not isinstance(source, str):
            source.tell()  # an open file
        elif not os.path.exists(source):
            raise RuntimeError(
                "open file failed because of errno 2 on fopen: No such file or directory,"
                f" file path: {source}"
            )
        try:
            self._zip = zipfile.ZipFile(source)
        except zipfile.BadZipFile as error:
            raise damaged_zip(0) from error
        names = self._zip.namelist()
        self._root = names[0].partition("/")[0] + "/" if names else ""

    def _entry(self, name: str) -> zipfile.ZipInfo:
        try:
            return self._zip.getinfo(self._root + name)
        except KeyError:
            raise damaged_archive(f"locating file {name}: file not found") from None

    def get_all_records(self) -> list[str]:
        """The records' names, in the order of the file."""
        return [name.removeprefix(self._root) for name in self._zip.namelist()]

    def has_record(self, name: str) -> bool:
        """Whether there is one of that name."""
        return self._root + name in self._zip.NameToInfo

    def get_record(self, name: str) -> bytes:
        """The bytes of a record."""
        return self._zip.read(self._entry(name))

    def get_record_size(self, name: str) -> int:
        """How many bytes it has."""
        return self._entry(name).file_size

    def get_record_header_offset(self, name: str) -> int:
        """Where its header begins in the file, in bytes."""
        return self._entry(name).header_offset

    def get_record_offset(self, name: str) -> int:
        """Where its bytes begin in the file."""
        start = self._entry(name).header_offset
        file: BinaryIO | Any = self._zip.fp
        file.seek(start + 26)  # the lengths of name and extra field, which end the header
        lengths = file.read(4)
        return start + 30 + sum(int.from_bytes(lengths[at : at + 2], "little") for at in (0, 2))

    def get_storage_from_record(self, name: str, numel: int, dtype: DType) -> Tensor:
        """An empty tensor whose storage holds the record's `numel` elements of `dtype`."""
        size = self.get_record_size(name)
        if size != numel * dtype.itemsize:
            kind = str(dtype).rpartition(".")[2]
            raise RuntimeError(
                f"record size ({size} bytes) does not match expected size"
                f" ({numel * dtype.itemsize} bytes = {numel} elements * {dtype.itemsize}"
                f" bytes/element) for dtype {kind}"
            )
        if not numel:
            return mindtorch.empty(0, dtype=dtype)
        return mindtorch.frombuffer(bytearray(self.get_record(name)), dtype=dtype)[:0]

    def serialization_id(self) -> str:
        """What tells files apart; nothing where the file has none."""
        name = ".data/serialization_id"
        return self.get_record(name).decode("latin1") if self.has_record(name) else ""


class PyTorchFileWriter:
    """Writes records into a zip file of tensors: to a path, or an open binary file."""

    def __init__(self, name_or_buffer: Any):
        self._root = "archive"
        if isinstance(name_or_buffer, str):
            folder, name = os.path.split(name_or_buffer)
            if folder and not os.path.isdir(folder):
                raise RuntimeError(f"Parent directory {folder} does not exist.")
            self._root = name.rpartition(".")[0] or name
        self._version = 3
        self._zip = zipfile.ZipFile(name_or_buffer, "w", zipfile.ZIP_STORED)

    def set_min_version(self, version: int) -> None:
        """A version that the file says at the least."""
        self._version = max(self._version, version)

    def write_record(self, name: str, data: bytes | str, size: int) -> None:
        """A record of the first `size` bytes."""
        content = data.encode() if isinstance(data, str) else data
        self._zip.writestr(aligned(self._zip, f"{self._root}/{name}"), content[:size])

    def get_all_written_records(self) -> set[str]:
        """The records' names."""
        return {n.removeprefix(f"{self._root}/") for n in self._zip.namelist()}

    def archive_name(self) -> str:
        """The folder of the records."""
        return self._root

    def write_end_of_file(self) -> None:
        """Write what ends the file, and close it."""
        records = self.get_all_written_records()
        version = f"{self._version}\n"
        self.write_record(".data/version" if self._version > 5 else "version", version, 9)
        if "byteorder" not in records:
            self.write_record("byteorder", sys.byteorder, 9)
        self.write_record(".data/serialization_id", fingerprint(self._zip), 40)
        self._zip.close()
