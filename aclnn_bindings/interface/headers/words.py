"""Owns the words of C and C++ that the grammar of headers tells apart."""

from typing import Final

STORAGE: Final = frozenset(
    ["typedef", "extern", "static", "inline", "register", "constexpr", "auto", "__inline",
     "__inline__", "__extension__", "_Noreturn", "thread_local", "_Thread_local"]
)  # fmt: skip
QUALIFIERS: Final = frozenset(["const", "volatile"])
RESTRICT: Final = frozenset(["restrict", "__restrict", "__restrict__"])
BUILTIN: Final = frozenset(
    ["void", "bool", "_Bool", "char", "short", "int", "long", "float", "double", "signed",
     "unsigned", "__int128", "_Complex"]
)  # fmt: skip
TAGS: Final = frozenset(["struct", "union", "enum", "class"])
CXX: Final = frozenset(
    ["template", "namespace", "using", "class", "operator", "public", "private", "protected",
     "virtual", "friend", "explicit", "decltype", "typename", "mutable", "noexcept",
     "static_assert", "concept", "requires", "::", "->"]
)  # fmt: skip
ATTRIBUTES: Final = frozenset(
    ["__attribute__", "__attribute", "__declspec", "alignas", "_Alignas", "__asm__", "asm"]
)
# Besides attributes, what a macro that marks declarations may expand to; no type hides there.
MARKERS: Final = frozenset(
    ["extern", "static", "inline", "__inline__", "__inline", "__extension__", "__stdcall",
     "__cdecl", '"C"', "noexcept"]
)  # fmt: skip
# A prototype that starts with one of these needs the full grammar.
INTRICATE: Final = frozenset(
    [*BUILTIN - {"void", "bool", "char", "int", "float", "double"}, *TAGS, *CXX, *ATTRIBUTES,
     *STORAGE - {"extern"}, "volatile", "return"]
)  # fmt: skip
