"""Owns case files of the vendor's operator test kit: CSV or XLSX, one call a row. Cells are Python
literals, read as data: nothing in a file is executed.

Source of the columns: documents of the public repository cann/ops-test-kit (ACLNN_Case_Writing),
2026-10.
"""

from __future__ import annotations

import ast
import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from ...foreign import ForeignError, text_of

# Between an operator and the name of a row in a case's subject: `aclnnAdd@small`.
MARK: Final = "@"
_DTYPES: Final = {
    "fp16": "float16", "fp32": "float32", "fp64": "float64", "bf16": "bfloat16", "float": "float32",
    "half": "float16", "double": "float64", "c64": "complex64", "c128": "complex128",
}  # fmt: skip
_KNOWN_DTYPES: Final = frozenset((
    "float16", "float32", "float64", "bfloat16", "int8", "int16", "int32", "int64", "uint8",
    "uint16", "uint32", "uint64", "bool", "complex64", "complex128", "float8_e4m3fn",
    "float8_e5m2", "int4",
))  # fmt: skip
# Column -> what a cell holds.
COLUMNS: Final = {
    "testcase_name": "text", "api_name": "text", "tensor_view_shapes": "shapes",
    "tensor_dtypes": "dtypes", "tensor_formats": "names", "tensor_storage_shapes": "shapes",
    "tensor_view_offsets": "numbers", "tensor_view_strides": "shapes",
    "output_tensor_indexes": "integers", "output_inplace_indexes": "integers",
    "attributes": "dict", "scalar_dtypes": "dtypes", "scalar_data_ranges": "ranges",
    "input_data_ranges": "ranges", "precision_tolerances": "ranges", "absolute_precision": "number",
    "is_enabled": "flag", "remark": "text", "network_name": "text", "priority": "number",
    "soc_series": "names",
}  # fmt: skip
# What results add, and a case file that is such a result has.
RESULTS: Final = ("precision_status", "verdict", "standards", "message", "time_us")
_EXPECTED: Final = {
    "text": "text", "shapes": "a tuple of shapes, such as ((2, 3), (3,)), of sizes from 0 on",
    "dtypes": "a tuple of dtypes, such as ('float16', 'float32')", "names": "a name or a tuple "
    "of names", "numbers": "a tuple of integers", "integers": "a tuple of integers",
    "dict": "a dict of parameters by header name, such as {'alpha': 1.0}",
    "ranges": "a tuple of pairs, such as ((-2, 2), (0, 1))", "number": "a number",
    "flag": "True or False",
}  # fmt: skip
_MOST_CELL: Final = 1 << 16


class CaseFileError(ValueError):
    """A file that can't be read, or a cell that is invalid; names row, column, value, what is
    expected."""


@dataclass(frozen=True, slots=True)
class FileCase:
    """One row: `cells` by column, parsed; `raw` as they stand in the file; `line` counts from 1,
    the names of columns included."""

    name: str
    api: str
    line: int
    cells: Mapping[str, Any]
    raw: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CaseFile:
    """The rows that are enabled, and the columns that were not read."""

    path: Path
    rows: tuple[FileCase, ...]
    ignored: tuple[str, ...] = ()
    disabled: int = 0
    columns: tuple[str, ...] = ()


def read(path: Path, sheet: str = "", rerun: bool = False) -> CaseFile:
    """The cases of a file; `rerun` takes those of a file of results that did not pass."""
    table = _table(path, sheet)
    head = next(table, None)
    if not head or "api_name" not in head:
        raise CaseFileError(f"{path}: row 1: no column api_name: expected the names of columns of "
                            "ACLNN cases")  # fmt: skip
    if double := next((c for i, c in enumerate(head) if c and c in head[:i]), None):
        raise CaseFileError(f"{path}: row 1: column {double!r} stands twice")
    rows, names, disabled = [], set[str](), 0
    for line, values in enumerate(table, 2):
        raw = {c: v for c, v in zip(head, values, strict=False) if c}
        if not any(raw.values()) or (rerun and raw.get("precision_status") == "PASS"):
            continue
        one = _row(path, line, raw)
        if one.name in names:
            raise _invalid(path, line, "testcase_name", one.name, "a name that no other row has")
        names.add(one.name)
        disabled += not one.cells.get("is_enabled", True)
        rows += [one] if one.cells.get("is_enabled", True) else []
    ignored = tuple(c for c in head if c and c not in COLUMNS and c not in RESULTS)
    return CaseFile(path, tuple(rows), ignored, disabled, tuple(c for c in head if c))


def _table(path: Path, sheet: str) -> Iterator[list[str]]:
    """Rows of text, the names of columns first."""
    if path.suffix.lower() == ".xlsx":
        yield from _workbook(path, sheet)
        return
    if sheet:
        raise CaseFileError(f"{path}: --sheet is for .xlsx files")
    try:
        content = text_of(path, "strict").removeprefix("\ufeff")
        yield from ([c.strip() for c in row] for row in csv.reader(io.StringIO(content)))
    except (OSError, UnicodeDecodeError, ForeignError, csv.Error) as error:
        raise CaseFileError(f"{path}: not a CSV file in UTF-8: {error}") from None


def _workbook(path: Path, sheet: str) -> Iterator[list[str]]:
    try:
        openpyxl: Any = import_module("openpyxl")  # it is optional, and has no types
    except ImportError:
        raise CaseFileError(f"{path}: .xlsx files need openpyxl: pip install openpyxl, or save the "
                            "sheet as CSV") from None  # fmt: skip
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except Exception as error:  # openpyxl raises what its parsers do
        raise CaseFileError(f"{path}: no .xlsx file: {error}") from None
    if sheet and sheet not in book.sheetnames:
        raise CaseFileError(f"{path}: no sheet {sheet!r}; there are {', '.join(book.sheetnames)}")
    if not book.worksheets:
        raise CaseFileError(f"{path}: it has no sheet")
    page = book[sheet] if sheet else book.worksheets[0]
    rows = page.iter_rows(values_only=True)
    while True:
        try:  # rows are parsed as they are asked for
            row = next(rows, None)
        except Exception as error:
            raise CaseFileError(f"{path}: no .xlsx file: {error}") from None
        if row is None:
            return
        yield ["" if v is None else str(v).strip() for v in row]


def _row(path: Path, line: int, raw: Mapping[str, str]) -> FileCase:
    cells = {c: _cell(path, line, c, v) for c, v in raw.items() if v and c in COLUMNS}
    api = str(cells.get("api_name", ""))
    if not api.startswith("acl") or not api.isidentifier():
        raise _invalid(path, line, "api_name", api, "an ACLNN operator, such as aclnnAdd")
    if "tensor_view_shapes" not in cells:
        raise _invalid(path, line, "tensor_view_shapes", "", _EXPECTED["shapes"])
    name = str(cells.get("testcase_name", f"{api}_{line}"))
    return FileCase(name, api, line, cells, raw)


def _invalid(path: Path, line: int, column: str, value: Any, expected: str) -> CaseFileError:
    return CaseFileError(
        f"{path}: row {line}, column {column}: {str(value)[:80]!r}: expected {expected}"
    )


def invalid(file: Path, row: FileCase, column: str, expected: str) -> CaseFileError:
    """The error of a cell that does not fit the operator's header."""
    return _invalid(file, row.line, column, row.raw.get(column, ""), expected)


def _cell(path: Path, line: int, column: str, text: str) -> Any:
    kind = COLUMNS[column]
    if kind == "text":
        return text
    try:
        if len(text) > _MOST_CELL:
            raise ValueError("longer than a cell")
        value = ast.literal_eval(text) if kind != "flag" else _flag(text)
    except (ValueError, KeyError, SyntaxError, RecursionError, MemoryError, TypeError):
        if kind in ("names", "dtypes") and text.replace("_", "").isalnum():
            value = text  # one word without quotes
        else:
            raise _invalid(path, line, column, text, _EXPECTED[kind]) from None
    if not _FITS[kind](value):
        raise _invalid(path, line, column, text, _EXPECTED[kind])
    return _dtypes(path, line, column, value) if kind == "dtypes" else value


def _flag(text: str) -> bool:
    return {"true": True, "1": True, "yes": True, "false": False, "0": False,
            "no": False}[text.lower()]  # fmt: skip


def _dtypes(path: Path, line: int, column: str, value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_dtypes(path, line, column, v) for v in value)
    if value is None:
        return None
    name = _DTYPES.get(value, value)
    if name not in _KNOWN_DTYPES:
        raise _invalid(path, line, column, value, "one of " + ", ".join(sorted(_KNOWN_DTYPES)))
    return name


def _nested(value: Any, leaf: type | tuple[type, ...]) -> bool:
    if isinstance(value, list | tuple):
        return all(_nested(v, leaf) for v in value)
    return value is None or (isinstance(value, leaf) and not isinstance(value, bool))


def _shapes(value: Any) -> bool:
    return isinstance(value, list | tuple) and _nested(value, int) and _natural(value)


def _natural(value: Any) -> bool:
    if isinstance(value, Sequence):
        return all(_natural(v) for v in value)
    return value is None or value >= 0


_FITS: Final[dict[str, Any]] = {
    "shapes": _shapes,
    "dtypes": lambda v: _nested(v, str) and v is not None,
    "names": lambda v: _nested(v, str),
    "numbers": lambda v: _nested(v, int),
    "integers": lambda v: isinstance(v, list | tuple) and _nested(v, int),
    "dict": lambda v: isinstance(v, dict) and all(isinstance(k, str) for k in v),
    "ranges": lambda v: _nested(v, (int, float)),
    "number": lambda v: isinstance(v, int | float),
    "flag": lambda v: isinstance(v, bool),
}
