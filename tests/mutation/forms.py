"""Owns how the text of a bug becomes something that can be switched at run time: the expression,
statement or function around it, with the bug in place."""

from dataclasses import dataclass
from typing import Any, Final

from .operators import bodies, parsed

# How far a bug is widened: a build tries the next one where the compiler refuses the last.
WIDTHS: Final = ("expression", "statement", "function")
_EXPRESSIONS: Final = frozenset((
    "binary_expression", "unary_expression", "update_expression", "assignment_expression",
    "call_expression", "conditional_expression", "parenthesized_expression", "cast_expression",
    "subscript_expression", "field_expression", "pointer_expression", "identifier",
    "number_literal", "true", "false", "qualified_identifier", "comma_expression",
))  # fmt: skip
_STATEMENTS: Final = frozenset((
    "expression_statement", "if_statement", "for_statement", "for_range_loop", "while_statement",
    "do_statement", "return_statement", "switch_statement", "compound_statement",
))  # fmt: skip
# What needs a constant, a name or a place: nothing inside is an expression that may branch.
_CLOSED: Final = frozenset((
    "template_argument_list", "template_parameter_list", "static_assert_declaration",
    "preproc_def", "preproc_function_def", "preproc_call", "enumerator_list", "array_declarator",
    "sizeof_expression", "decltype", "type_descriptor", "using_declaration", "alias_declaration",
    "optional_parameter_declaration", "lambda_capture_specifier", "field_initializer_list",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Form:
    """The bytes [start, end) of a source that a bug replaces by `put`, in the form that
    `sites.Site` names; `function` is the one that they stand in."""

    form: str
    start: int
    end: int
    put: str
    function: str = ""


def form_of(source: bytes, start: int, end: int, put: str, width: str) -> Form | None:
    """How `put` for the bytes [start, end) is switched; None where nothing around it can be."""
    for name, first, last in bodies(source):
        if first <= start and end <= last:
            return _within(source, start, end, put, (first, last), name)
    node = parsed(source).root_node.descendant_for_byte_range(start, max(start, end - 1))
    chosen = _widened(node, start, end, width)
    if chosen is None:
        return None
    form = "expression" if chosen.type in _EXPRESSIONS else "statement"
    around = (chosen.start_byte, chosen.end_byte)
    return _within(source, start, end, put, around, _function(chosen, source), form)


def _within(
    source: bytes, start: int, end: int, put: str, around: tuple[int, int], function: str,
    form: str = "expression",
) -> Form:  # fmt: skip
    first, last = around
    text = source[first:start].decode() + put + source[end:last].decode()
    return Form(form, first, last, text, function)


def _widened(node: Any, start: int, end: int, width: str) -> Any:
    """The nearest node at or above `node` that holds the range and can be switched."""
    chosen = None
    while node is not None:
        holds = node.start_byte <= start and end <= node.end_byte
        if node.type in _CLOSED or _constant(node):
            chosen = None
        elif holds and _fits(node, width):
            chosen = chosen or node
        node = node.parent
    return chosen


def _fits(node: Any, width: str) -> bool:
    """Whether a node is what a width asks for."""
    if node.type in _STATEMENTS:
        return width != "function" or _is_body(node)
    return width == "expression" and node.type in _EXPRESSIONS and _is_value(node)


def _constant(node: Any) -> bool:
    """Whether a declaration needs its value when it is compiled."""
    return (
        node.type in ("declaration", "field_declaration")
        and b"constexpr" in node.text.split(b"=")[0].split(b"{")[0]
    )


def _is_value(node: Any) -> bool:
    """Whether a node stands where a value does, not a name that is declared or called."""
    parent = node.parent
    if parent is None:
        return False
    named = parent.child_by_field_name("function") or parent.child_by_field_name("declarator")
    left = parent.child_by_field_name("left") if parent.type == "assignment_expression" else None
    operand = parent.type in ("update_expression", "pointer_expression")
    return not operand and all(p is None or p.id != node.id for p in (named, left))


def _is_body(node: Any) -> bool:
    return node.parent is not None and node.parent.type == "function_definition"


def _function(node: Any, source: bytes) -> str:
    """The name of the innermost function around a node."""
    while node is not None and node.type != "function_definition":
        node = node.parent
    declarator = node.child_by_field_name("declarator") if node is not None else None
    if declarator is None:
        return ""
    head = source[declarator.start_byte : declarator.end_byte].decode()
    return head.partition("(")[0].strip("&* ")
