"""Renders what type checkers see of rows: the methods of Tensor, and `aten`'s functions."""

import inspect
import re
from collections.abc import Iterable
from textwrap import fill
from typing import Any

HEAD = '''"""Generated from the rows by `docs/check.py --write`; do not edit. {what}"""

import builtins
from collections.abc import Callable, Sequence
from typing import Any, overload

from mindtorch._tensor.device import DeviceLike
from mindtorch._tensor.dtype import dtype as Dtype
{tensor}
Number = builtins.bool | builtins.int | builtins.float | builtins.complex
Ints = builtins.int | Sequence[builtins.int]

'''
TENSOR = (
    "from mindtorch._tensor.geometry import Size\nfrom mindtorch._tensor.tensor import Tensor\n"
)
_SCALARS = {
    "bool": "bool", "int": "int", "float": "float", "str": "str", "Scalar": "Number",
    "Number": "Number", "ScalarType": "Dtype", "Device": "DeviceLike", "Tensor": "Tensor",
    "Tensor|Scalar": "Tensor | Number",
}  # fmt: skip
ANY = "(*args: Any, **kwargs: Any) -> Any: ...\n"
# Python reads these names otherwise, or a class defines them itself.
_KEYWORDS = frozenset(("from", "is", "lambda", "in", "global", "async"))


def type_of(arg: Any) -> str:
    """The Python type of a schema's argument."""
    kind = arg.kind.name
    if kind == "TENSORS":
        return "Sequence[Tensor]"
    if kind == "OPTIONAL_TENSORS":
        return "Sequence[Tensor | None]"
    if kind == "INTS":
        text = "Ints"
    elif kind in ("TENSOR", "OPTIONAL_TENSOR"):
        text = "Tensor"
    elif kind == "UNION":
        text = "Tensor | Number"
    elif kind == "SCALAR":
        text = "Number"
    else:
        text = _SCALARS.get(arg.type.rstrip("?"), "Any")
    return text if text == "Any" or not arg.optional else f"{text} | None"


def result_of(returns: Iterable[Any]) -> str:
    """The Python type of a schema's results."""
    texts = []
    for item in returns:
        text = _SCALARS.get(getattr(item, "type", "Tensor").rstrip("?"), "Any")
        texts.append(f"tuple[{text}, ...]" if item.list else text)
    if not texts:
        return "None"
    return texts[0] if len(texts) == 1 else f"tuple[{', '.join(texts)}]"


def parameters(args: Iterable[Any]) -> str:
    """The parameters as text, keyword-only ones after a star."""
    parts, starred = [], False
    for arg in args:
        if arg.keyword_only and not starred:
            parts.append("*")
            starred = True
        default = " = ..." if arg.has_default else ""
        parts.append(f"{arg.name}: {type_of(arg)}{default}")
    return ", ".join(parts)


def written_by_hand(function: Any) -> bool:
    """Whether a function is source of ours, not written for a row."""
    code = getattr(function, "__code__", None)
    return code is not None and not code.co_filename.startswith("<mindtorch")


def signature_of(function: Any, skip: int = 0) -> tuple[str, str]:
    """Parameters and result of a hand-written function, `Any` for what has no plain name."""
    signature = inspect.signature(function)
    parts, starred = [], False
    for parameter in list(signature.parameters.values())[skip:]:
        prefix = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(
            parameter.kind, ""
        )
        if parameter.kind == parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
        starred = starred or prefix == "*" or parameter.kind == parameter.KEYWORD_ONLY
        default = " = ..." if parameter.default is not parameter.empty else ""
        parts.append(f"{prefix}{parameter.name}: {_plain(parameter.annotation)}{default}")
    return ", ".join(parts), _plain(signature.return_annotation)


_STARS = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}


def _plain(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else ""
    words = set(re.findall(r"[A-Za-z_]+", text))
    return text if text and words <= _PLAIN and "..." not in text.replace(", ...]", "") else "Any"


_PLAIN = {"Tensor", "int", "float", "bool", "str", "None", "tuple", "list", "Any", "Dtype", "Size"}


def overloaded(name: str, form: str) -> bool:
    """Whether several rows share the name: which results come depends on the arguments."""
    from mindtorch._dispatch.overloads import rows_of

    return len(rows_of(name, form)) > 1


def aten_page() -> str:
    """`aten` as a module: a function for each row, and for what is published beside rows."""
    import mindtorch
    from mindtorch.ops import OPS, aten

    mindtorch.Tensor.add  # noqa: B018 - loads the rows
    lines = [HEAD.format(what="`aten` as derivatives and bodies see it.", tensor=TENSOR)]
    lines.append("def publish(name: str, function: Any) -> None: ...\n")
    lines.append("def __getattr__(name: str) -> Callable[..., Any]: ...\n")
    rows = {op.name.replace(".", "_"): op for op in OPS.values()}
    groups: dict[str, list[str]] = {}
    for name in sorted({*rows, *vars(aten)} - {"publish"} - _KEYWORDS):
        if text := _aten_signature(name, vars(aten).get(name), rows.get(name)):
            groups.setdefault(_BUILTIN.sub(r"builtins.\1", text), []).append(name)
    for text, (first, *others) in groups.items():
        lines.append(f"def {first}{text}: ...\n")
        for line in fill(" ".join(others), 80).splitlines():
            lines.append(f"{' = '.join([*line.split(), first])}\n")
    return "".join(lines)


def _aten_signature(name: str, function: Any, row: Any) -> str:
    """Parameters and result; "" for what `__getattr__` answers for."""
    if name.startswith("__") or overloaded(name, "aten") or (row and row.api.variadic):
        return ""
    if function is not None and written_by_hand(function):
        return "({}) -> {}".format(*signature_of(function))
    schema = row and row.schema
    return schema and f"({parameters(schema.args)}) -> {result_of(schema.returns)}"


def functions_page() -> str:
    """torch's functions at the top level that rows publish."""
    import mindtorch
    from mindtorch._functional.publish import FUNCTIONS
    from mindtorch.ops import OPS

    mindtorch.Tensor.add  # noqa: B018 - loads the rows
    lines, names = [], []
    for name in sorted({*mindtorch.__all__} & {*FUNCTIONS} - _KEYWORDS):
        text = ""
        if written_by_hand(FUNCTIONS[name]):
            text = "({}) -> {}: ...\n".format(*signature_of(FUNCTIONS[name]))
        elif row := OPS.get(name):
            text = _function(row, name)
        if text:
            names.append(name)
            lines.append(_BUILTIN.sub(r"builtins.\1", f"def {name}{text}"))
    listed = fill(", ".join(map(repr, names)) + ",", 100, initial_indent="    ",
                  subsequent_indent="    ") + "\n"  # fmt: skip
    head = HEAD.format(what="torch's functions, those of rows.", tensor=TENSOR)
    return f"{head}__all__ = [\n{listed}]\n\n{''.join(lines)}"


def _function(row: Any, name: str) -> str:
    if overloaded(name, "function") or row.api.variadic:
        return ANY
    args = list(row.schema.args)
    params = re.sub(r"^self:", "input:", parameters(args))
    star = "" if any(a.keyword_only for a in args) else "*, "
    return f"({params}, {star}out: Any = ...) -> {result_of(row.schema.returns)}: ...\n"


def methods_page() -> str:
    """Tensor's methods: those of rows, in place too, and those that are written by hand."""
    import mindtorch
    from mindtorch._dispatch.builtins import function_of
    from mindtorch.ops import OPS

    mindtorch.Tensor.add  # noqa: B018 - loads the rows
    lines = [HEAD.format(what="Tensor's methods.", tensor=TENSOR)]
    lines.append("class Methods:\n")
    for name in sorted(vars(mindtorch.Tensor)):
        member = function_of(mindtorch.Tensor.__dict__[name])
        if name in _OWN or name in _KEYWORDS or (name.startswith("_") and name not in _OPERATORS):
            continue
        # `Tensor.int` and others hide the builtin types below them.
        lines.append(_BUILTIN.sub(r"builtins.\1", _method(name, member, OPS)))
    return "".join(lines)


def _method(name: str, member: Any, rows: Any) -> str:
    from mindtorch._dispatch.entry import takes_varargs

    if isinstance(member, property):
        if member.fset is not None:
            return f"    {name}: Any\n"
        return f"    @property\n    def {name}(self) -> Any: ...\n"
    row = getattr(member, "op", None)
    if row is not None and name[:2] != "__" and overloaded(row.base_name, member.form):
        return f"    def {name}{ANY.replace('(', '(self, ', 1)}"
    function = member if row is None else None
    if function is not None and getattr(function, "__code__", None) is not None:
        if written_by_hand(function):
            params, result = signature_of(function, 1)
            return (
                f"    def {name}({', '.join(p for p in ('self', params) if p)}) -> {result}: ...\n"
            )
        row = rows.get(name) or rows.get(name.rstrip("_"))
    if row is None and name in _OPERATORS:
        return f"    def {name}(self, other: Tensor | Number) -> Tensor: ...\n"
    if row is None:
        return (
            f"    def {name}(self, *args: Any, **kwargs: Any) -> Any: ...\n"
            if callable(member)
            else ""
        )
    others = [a for a in row.schema.args if a.name != "self"]
    params = parameters(others if len(others) < len(row.schema.args) else others[1:])
    if name.startswith("__"):
        return _line(name, params.split(",")[0], result_of(row.schema.returns))
    if takes_varargs(row):
        several = others[0].name
        result = "Tensor" if name[-1] == "_" else result_of(row.schema.returns)
        return (
            f"    @overload\n    def {name}(self, {several}: Sequence[int]) -> {result}: ...\n"
            f"    @overload\n    def {name}(self, *{several}: int) -> {result}: ...\n"
        )
    return _line(name, params, "Tensor" if name[-1] == "_" else result_of(row.schema.returns))


def _line(name: str, params: str, result: str) -> str:
    note = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
    params = ", ".join(p for p in ("self", params) if p)
    return f"    def {name}({params}) -> {result}: ...{note}\n"


_BUILTIN = re.compile(r"(?<=[ \[])(int|float|bool|str|tuple|list)(?=[\],)\[:]| [|=]|$)")
_OPERATORS = frozenset(
    f"__{n}__" for n in (
        "add", "radd", "iadd", "sub", "rsub", "isub", "mul", "rmul", "imul", "truediv", "rtruediv",
        "itruediv", "floordiv", "rfloordiv", "mod", "rmod", "pow", "rpow", "matmul", "rmatmul",
        "and", "or", "xor", "lshift", "rshift", "eq", "ne", "lt", "le", "gt", "ge",
        "neg", "abs", "invert",
        "getitem", "setitem", "len", "iter", "contains", "bool", "int", "float", "complex", "index",
        "deepcopy", "dlpack",
    )
)  # fmt: skip
# What the class says itself.
_OWN = frozenset((
    "shape", "dtype", "device", "size", "numel", "ndim", "dim", "stride", "storage_offset",
    "element_size", "data_ptr", "storage", "untyped_storage", "itemsize", "nbytes", "get_device",
    "is_floating_point", "is_complex", "is_signed", "is_cpu", "is_npu", "is_meta",
))  # fmt: skip
