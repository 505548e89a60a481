"""Owns the types of TorchScript: how they are written, and which may stand for which."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class ScriptType:
    """A type: its kind, what it contains, and the name or the fields of those that have them."""

    __slots__ = ("args", "defaults", "fields", "kind", "name")

    def __init__(
        self, kind: str, args: Iterable[ScriptType] = (), name: str = "", fields: Sequence[str] = ()
    ):
        self.kind, self.args, self.name, self.fields = kind, tuple(args), name, tuple(fields)
        self.defaults: dict[str, str] = {}
        if kind == "Union":
            self.args = tuple(sorted(self.args, key=ScriptType.annotation))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ScriptType) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return self.kind, self.args, self.name

    def __str__(self) -> str:
        inner = [str(a) for a in self.args]
        match self.kind:
            case "List":
                return f"{inner[0]}[]"
            case "Optional":
                return f"{inner[0]}?"
            case "Tuple" if self.fields:
                pairs = zip(self.fields, inner, strict=True)
                fields = ", ".join(f"{f} : {t}{self.defaults.get(f, '')}" for f, t in pairs)
                return f"NamedTuple({fields})"
            case "Tuple":
                return f"({', '.join(inner)})"
            case "Dict" | "Union":
                return f"{self.kind}({', '.join(inner)})"
            case "Interface":
                return f"InterfaceType<{self.name.rpartition('.')[2]}>"
            case "Future":
                return f"Future[{inner[0]}]"
        return self.kind if self.kind == "Function" else self.name or self.kind

    def annotation(self) -> str:
        """The type as a program annotates it."""
        if self.kind == "Tuple" and self.name:
            return self.name
        if self.kind == "Tuple" and not self.args:
            return "Tuple[()]"
        if self.args:
            return f"{self.kind}[{', '.join(a.annotation() for a in self.args)}]"
        return {"Scalar": "number"}.get(self.kind, self.name or self.kind)

    def is_a(self, other: ScriptType) -> bool:
        """Whether a value of this type may stand where `other` is expected."""
        if self == other or other.kind == "Any":
            return True
        match other.kind:
            case "Optional":
                if self.kind == "NoneType":
                    return True
                inner = self.args[0] if self.kind == "Optional" else self
                return inner.is_a(other.args[0])
            case "Union":
                parts = self.args if self.kind == "Union" else (self,)
                return all(any(p.is_a(o) for o in other.args) for p in parts)
            case "Scalar":
                return self.kind in ("int", "float", "complex")
            case "AnyList" | "AnyTuple":
                return self.kind == other.kind[3:]
            case "Tuple" if self.kind == "Tuple" and len(self.args) == len(other.args):
                names = not other.name or other.name == self.name
                return names and all(a.is_a(b) for a, b in zip(self.args, other.args, strict=True))
            case "Future" if self.kind == "Future":
                return self.args[0].is_a(other.args[0])
        return False


INFERRED = ScriptType("Tensor")  # of parameters without annotations: the same type, another object
TENSOR, INT, FLOAT, BOOL = (
    ScriptType("Tensor"),
    ScriptType("int"),
    ScriptType("float"),
    ScriptType("bool"),
)
STR, COMPLEX, NONE, ANY = (
    ScriptType("str"),
    ScriptType("complex"),
    ScriptType("NoneType"),
    ScriptType("Any"),
)
SCALAR, DEVICE, FUNCTION = ScriptType("Scalar"), ScriptType("Device"), ScriptType("Function")
MUTABLE = frozenset(("Tensor", "List", "Dict", "Class", "Any", "Future", "Interface"))


def list_of(kind: ScriptType) -> ScriptType:
    """`List[kind]`."""
    return ScriptType("List", (kind,))


def optional(kind: ScriptType) -> ScriptType:
    """`Optional[kind]`; what is optional stays as it is."""
    return kind if kind.kind in ("Optional", "NoneType") else ScriptType("Optional", (kind,))


def without_none(kind: ScriptType) -> ScriptType:
    """What an `Optional` may hold."""
    return kind.args[0] if kind.kind == "Optional" else kind


def is_mutable(kind: ScriptType) -> bool:
    """Whether a value of this type, or one inside of it, can change."""
    return kind.kind in MUTABLE or any(is_mutable(a) for a in kind.args)


def unified(first: ScriptType, second: ScriptType) -> ScriptType | None:
    """The type of a value that is of one type or the other, by the way that was taken."""
    if first.is_a(second):
        return second
    if second.is_a(first):
        return first
    for one, other in ((first, second), (second, first)):
        if one.kind == "NoneType" and other.kind != "NoneType":
            return optional(other)
        if one.kind == "Optional" and other.kind != "Optional":
            inner = unified(one.args[0], other)
            return optional(inner) if inner else None
    if first.kind == second.kind == "Tuple" and len(first.args) == len(second.args):
        parts = [unified(a, b) for a, b in zip(first.args, second.args, strict=True)]
        if all(parts):
            return ScriptType("Tuple", [p for p in parts if p])
    return None
