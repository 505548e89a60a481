"""Owns the mutation operators: from a parsed kernel file to sites with what they change to."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import tree_sitter_cpp
from tree_sitter import Language, Parser

from .sites import VALUE_WORDS, VALUES, Change, Site

_PARSER: Final = Parser(Language(tree_sitter_cpp.language()))
# Attribute macros and pragmas that the grammar does not know; blanks keep every position.
_BLANKED: Final = re.compile(
    rb"ACL_INLINE|ACL_VECTOR|ACL_IVDEP|ACL_LAMBDA|ACLSIM_SHARED|^ACLNN_\w+\(.*$", re.M
)
_BODY_MACRO: Final = re.compile(rb"ACL_FN\((\w+),")

_SWAPPED: Final = {
    "+": "-", "-": "+", "*": "/", "/": "*", "%": "*", "&": "|", "|": "&", "^": "&",
    "<<": ">>", ">>": "<<", "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", "|=": "&=",
    "&=": "|=", ">>=": "<<=", "<<=": ">>=",
}  # fmt: skip
_NEIGHBOUR: Final = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_NEGATED: Final = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_CALLS: Final = {
    "nearbyint": "std::round", "rint": "std::trunc", "round": "std::nearbyint",
    "floor": "std::trunc", "ceil": "std::floor", "trunc": "std::floor", "max": "std::min",
    "min": "std::max", "fmod": "std::remainder", "sin": "std::cos", "cos": "std::sin",
    "fabs": "", "abs": "", "sqrt": "", "exp": "", "log": "", "v_exp": "", "v_log": "",
    "tanh": "", "v_tanh": "", "v_erf": "", "erf": "", "erfc": "1-erf", "expm1": "exp-1",
    "log1p": "log1p",
}  # fmt: skip
_TAILS: Final = (64, 1024, 65536)
_STRIDES: Final = re.compile(r"(^|[._>])(\w*strides?|\w*_step|step)(\[|$)")
_OFFSETS: Final = re.compile(r"(^|[._>])(\w*offsets?)(\[|$)")
# Types whose values are an operator's numbers; indices and sizes have types of their own.
_NUMBERS: Final = re.compile(r"(T|C|R|A|Acc|W|float|double|Wide<\w+>|c128)")
_REFUSES: Final = re.compile(r"\.(fail|trap)\(|return refuse|PARAM_|ACL_RETURN_IF_FAILED")
# Where constants must be constants, or where a change means nothing to an operator.
_CLOSED: Final = frozenset((
    "template_argument_list", "template_parameter_list", "static_assert_declaration",
    "preproc_def", "preproc_function_def", "preproc_include", "preproc_call", "enumerator_list",
    "array_declarator", "bitfield_clause", "sizeof_expression", "alignof_expression", "decltype",
    "string_literal", "attribute_specifier", "attribute_declaration", "type_descriptor",
    "using_declaration", "alias_declaration", "comment", "optional_parameter_declaration",
    "lambda_capture_specifier", "noexcept", "type_requirement", "field_initializer_list",
    "gnu_asm_expression", "throw_statement", "char_literal",
))  # fmt: skip
_CALLED: Final = re.compile(r"\b([a-zA-Z_]\w*)(?:<[^<>()]*>)?\(")
_STATEMENTS: Final = frozenset(("call_expression", "assignment_expression"))


def sites(source: bytes) -> list[Site]:
    """Every site of a file, in order of position; ranges nest or are apart."""
    text = _blanked(source)
    found: list[Site] = []
    for name, start, end in bodies(text):
        found += _Walk(source, start, name).body(text[start:end])
        text = _blanked_call(text, start, end)
    walk = _Walk(source, 0, "")
    found += walk.file(text)
    first = walk.run_once()
    for site in found:
        site.once = site.once or site.function.rpartition(".")[2] in first
    return sorted(found, key=lambda s: (s.start, -s.end))


def _blanked(source: bytes) -> bytes:
    return _BLANKED.sub(lambda m: b" " * len(m.group(0)), source)


@lru_cache(maxsize=2)
def parsed(source: bytes) -> Any:
    """The syntax tree of a kernel file, without the macros that the grammar does not know."""
    return _PARSER.parse(_blanked(source))


def bodies(text: bytes) -> Iterator[tuple[str, int, int]]:
    """(name, start, end) of the expression that each ACL_FN row computes."""
    for match in _BODY_MACRO.finditer(text):
        depth, commas, at, start = 1, 1, match.end(), 0
        while depth:
            c = text[at : at + 1]
            depth += (c in b"({[") - (c in b")}]")
            if c == b"," and depth == 1 and commas < 3:
                commas += 1
                start = at + 1
            at += 1
        yield match.group(1).decode(), start, at - 1


def _blanked_call(text: bytes, start: int, end: int) -> bytes:
    at = text.rindex(b"ACL_FN(", 0, start)
    return text[:at] + re.sub(rb"[^\n]", b" ", text[at : end + 1]) + text[end + 1 :]


class _Walk:
    """Collects the sites below one syntax tree. `shift`: where the tree's text lies in the file."""

    def __init__(self, source: bytes, shift: int, function: str) -> None:
        self.source, self.shift, self.function = source, shift, function
        self.found: dict[tuple[int, int, str], Site] = {}
        self.once = False
        self.returns_numbers = False
        self.calls: dict[str, set[str]] = {}  # of functions, and of static initialisers under ""

    def run_once(self) -> set[str]:
        """Functions that static initialisers call, and what those call: they run once a process."""
        names: set[str] = set()
        new = self.calls.get("", set()) & self.calls.keys()
        while new:
            names |= new
            new = set().union(*(self.calls[n] for n in new)) & self.calls.keys() - names
        return names

    def file(self, text: bytes) -> list[Site]:
        self.visit(_PARSER.parse(text).root_node)
        return list(self.found.values())

    def body(self, text: bytes) -> list[Site]:
        """Sites of one expression that stands alone."""
        head = b"auto x = "
        self.shift -= len(head)
        tree = _PARSER.parse(head + text + b";").root_node
        value = tree.children[0].child_by_field_name("declarator").child_by_field_name("value")
        self.values(value)
        self.visit(value)
        return list(self.found.values())

    def text(self, node: Any) -> str:
        return self.source[node.start_byte + self.shift : node.end_byte + self.shift].decode()

    def add(self, node: Any, form: str, *changes: Change) -> None:
        start, end = node.start_byte + self.shift, node.end_byte + self.shift
        site = self.found.setdefault(
            (start, end, form), Site(start, end, form, self.function, [], self.once)
        )
        known = {c.text for c in site.changes} if form == "expression" else set()
        site.changes += [c for c in changes if c.text not in known]

    def visit(self, node: Any) -> None:
        if node.type in _CLOSED or node.type == "ERROR":
            return
        handler = getattr(self, f"on_{node.type}", None)
        if handler is None or handler(node) is not False:
            for child in node.named_children:
                self.visit(child)

    # Containers -------------------------------------------------------------------------------

    def on_function_definition(self, node: Any) -> bool:
        head = self.text(node).partition("{")[0]
        if "constexpr" in head or node.child_by_field_name("body") is None:
            return False
        outer, numbers = self.function, self.returns_numbers
        declarator = node.child_by_field_name("declarator")
        name = self.text(declarator).partition("(")[0].strip("&* ")
        self.function = f"{outer}.{name}".strip(".")
        body = self.text(node.child_by_field_name("body"))
        self.calls.setdefault(name, set()).update(_CALLED.findall(body))
        kind = node.child_by_field_name("type")
        self.returns_numbers = kind is not None and bool(_NUMBERS.fullmatch(self.text(kind)))
        self.visit(node.child_by_field_name("body"))
        self.function, self.returns_numbers = outer, numbers
        return False

    def on_struct_specifier(self, node: Any) -> bool:
        outer = self.function
        name = node.child_by_field_name("name")
        if name is not None:
            self.function = f"{outer}.{self.text(name)}".strip(".")
        body = node.child_by_field_name("body")
        if body is not None:
            self.visit(body)
        self.function = outer
        return False

    on_class_specifier = on_struct_specifier

    def on_lambda_expression(self, node: Any) -> bool:
        numbers, self.returns_numbers = self.returns_numbers, False
        self.visit(node.child_by_field_name("body"))
        self.returns_numbers = numbers
        return False

    def on_field_declaration(self, node: Any) -> bool:
        return False  # members' defaults

    def on_declaration(self, node: Any) -> bool:
        words = self.text(node)
        if "constexpr" in words.split("=")[0] or not self.function:
            return False
        kind = node.child_by_field_name("type")
        numbers = kind is not None and bool(_NUMBERS.fullmatch(self.text(kind)))
        outer, self.once = self.once, self.once or words.startswith("static")
        if self.once:
            self.calls.setdefault("", set()).update(_CALLED.findall(words))
        for child in node.children_by_field_name("declarator"):
            value = child.child_by_field_name("value")
            if value is None:
                continue
            if numbers and child.child_by_field_name("declarator").type == "identifier":
                self.values(value)
            self.visit(value)
        self.once = outer
        return False

    def on_case_statement(self, node: Any) -> bool:
        value = node.child_by_field_name("value")
        for child in node.named_children:
            if value is None or child.id != value.id:
                self.visit(child)
        return False

    # Statements -------------------------------------------------------------------------------

    def on_if_statement(self, node: Any) -> bool:
        condition = node.child_by_field_name("condition")
        fixed = any(c.type == "constexpr" for c in node.children)
        refusal = _REFUSES.search(self.text(node.child_by_field_name("consequence")))
        if not fixed and not refusal and condition.named_child_count == 1:
            value = condition.named_children[0]
            if value.type not in ("declaration", "init_statement"):
                self.branch(value)
                self.visit(value)
        for name in ("consequence", "alternative"):
            part = node.child_by_field_name(name)
            if part is not None and not (refusal and name == "consequence"):
                self.visit(part)
        return False

    def branch(self, value: Any) -> None:
        self.add(value, "expression", Change("branch", "true", "true"),
                 Change("branch", "false", "false"))  # fmt: skip

    def on_conditional_expression(self, node: Any) -> None:
        self.branch(node.child_by_field_name("condition"))

    def on_for_statement(self, node: Any) -> bool:
        condition = node.child_by_field_name("condition")
        if condition is not None and condition.type == "binary_expression":
            self.bounds(condition)
        for name in ("initializer", "condition", "body"):
            part = node.child_by_field_name(name)
            if part is not None:
                self.visit(part)
        return False

    def bounds(self, node: Any) -> None:
        operator = self.text(node.child_by_field_name("operator"))
        if operator not in ("<", "<=", "!="):
            return
        left = self.text(node.child_by_field_name("left"))
        right = self.text(node.child_by_field_name("right"))
        changes = [Change("bound", f"{left} < ({right}) - 1", "one step early")]
        if not right.isdigit():
            changes += [
                Change("tail", f"{left} {operator} aclsim_mutants::up_to({right}, {n})", f"to {n}")
                for n in _TAILS
            ]
        self.add(node, "expression", *changes)

    def on_expression_statement(self, node: Any) -> bool | None:
        if not node.named_children:
            return False
        inner = node.named_children[0]
        text = self.text(node)
        # How much workspace is asked for shows only where the allocator does not round up.
        if text.startswith("ACL_RETURN_IF_FAILED") or "workspace_size" in text:
            return False
        if inner.type in _STATEMENTS and text.endswith(";"):
            self.add(node, "statement", Change("statement", "", "left out"))
        return None

    def on_return_statement(self, node: Any) -> None:
        if node.named_children and self.returns_numbers:
            self.values(node.named_children[0])

    # Expressions ------------------------------------------------------------------------------

    def values(self, node: Any) -> None:
        """Spoil a value as it passes. Literals and lists have nothing to lose."""
        if node.type in (
            "number_literal",
            "initializer_list",
            "lambda_expression",
            "true",
            "false",
        ):
            return
        self.add(node, "values", *(
            Change(kind, "", words) for kind, words in zip(VALUES, VALUE_WORDS, strict=True)
        ))  # fmt: skip

    def on_binary_expression(self, node: Any) -> None:
        left, right = (node.child_by_field_name(n) for n in ("left", "right"))
        operator = self.text(node.child_by_field_name("operator"))
        a, b = self.text(left), self.text(right)
        if operator in _SWAPPED:
            other = _SWAPPED[operator]
            self.add(node, "expression", Change("arithmetic", f"{a} {other} {b}", other))
        if operator in ("+", "-", "*", "/", "%"):
            self.add(node, "expression", Change("operand", f"({a})", f"without {operator} {b}"))
        if operator in ("+", "*"):
            self.add(node, "expression", Change("operand", f"({b})", f"without {a} {operator}"))
        if operator in _NEIGHBOUR and not self.takes_either(node, {a, b}):
            other = _NEIGHBOUR[operator]
            self.add(node, "expression", Change("comparison", f"{a} {other} {b}", other))
        if operator in _NEGATED:
            other = _NEGATED[operator]
            kind = "nan" if a == b or f"{a} - {a}" == a else "comparison"
            self.add(node, "expression", Change(kind, f"{a} {other} {b}", other))
        if operator in ("==", "!=") and re.fullmatch(r"(\w+(\[\w+\])?) - \1", a):
            word = "true" if operator == "==" else "false"
            self.add(node, "expression", Change("nan", word, f"{word}: infinities as numbers"))
        if operator in ("&&", "||"):
            other = "||" if operator == "&&" else "&&"
            self.add(node, "expression", Change("logic", f"({a}) {other} ({b})", other))

    def takes_either(self, node: Any, sides: set[str]) -> bool:
        """Whether this chooses between its own sides, `a < b ? a : b`: equal ones don't matter."""
        parent = node.parent
        if parent is None or parent.type != "conditional_expression":
            return False
        parts = [parent.child_by_field_name(n) for n in ("consequence", "alternative")]
        return {self.text(p).strip("()- ") for p in parts} == {x.strip("()- ") for x in sides}

    def on_unary_expression(self, node: Any) -> None:
        operator = self.text(node.child_by_field_name("operator"))
        operand = self.text(node.child_by_field_name("argument"))
        if operator == "!":
            self.add(node, "expression",
                     Change("logic", f"static_cast<bool>({operand})", "without !"))  # fmt: skip
        elif operator == "-":
            self.add(node, "expression", Change("arithmetic", f"({operand})", "without -"))
        elif operator == "~":
            self.add(node, "expression", Change("arithmetic", f"({operand})", "without ~"))

    def on_number_literal(self, node: Any) -> None:
        text = self.text(node)
        whole = re.fullmatch(r"(0[xX][0-9a-fA-F']+|[0-9']+)[uUlL]*", text)
        if whole:
            self.add(node, "expression", Change("constant", f"{text} + 1", f"{text} + 1"))
            if not re.fullmatch(r"0+[uUlL]*", text):
                self.add(node, "expression", Change("constant", f"{text} - 1", f"{text} - 1"))
            return
        one = "1.0f" if text.endswith(("f", "F")) else "1.0"
        off = "1.00390625f" if one.endswith("f") else "1.00390625"
        self.add(node, "expression", Change("constant", f"{text} + {one}", f"{text} + 1"),
                 Change("constant", f"{text} * {off}", f"{text} * 1.0039"))  # fmt: skip

    def on_true(self, node: Any) -> None:
        self.add(node, "expression", Change("constant", "false", "false"))

    def on_false(self, node: Any) -> None:
        self.add(node, "expression", Change("constant", "true", "true"))

    def on_assignment_expression(self, node: Any) -> bool:
        left, right = (node.child_by_field_name(n) for n in ("left", "right"))
        operator = self.text(node.child_by_field_name("operator"))
        if operator == "=":
            if left.type == "subscript_expression":
                self.values(right)
        else:
            a, b = self.text(left), self.text(right)
            if operator in _SWAPPED:
                other = _SWAPPED[operator]
                self.add(node, "expression", Change("arithmetic", f"{a} {other} {b}", other))
            if operator in ("+=", "-=", "*=") and left.type in (
                "identifier",
                "subscript_expression",
            ):
                self.add(node, "after", Change("accumulator", "", "rounded after each step"))
        self.target(left)
        self.visit(right)
        return False

    def target(self, left: Any) -> None:
        """What is written to stays what it is; where in it stays open to change."""
        if left.type == "subscript_expression":
            self.target(left.child_by_field_name("argument"))
            self.visit(left.child_by_field_name("indices"))

    def on_update_expression(self, node: Any) -> bool:
        self.target(node.child_by_field_name("argument"))
        return False

    def on_pointer_expression(self, node: Any) -> bool | None:
        if self.text(node).startswith("&"):
            return False
        return None

    def on_subscript_expression(self, node: Any) -> bool | None:
        self.place(node)
        self.visit(node.child_by_field_name("indices"))
        return False

    def on_field_expression(self, node: Any) -> bool:
        self.place(node)
        argument = node.child_by_field_name("argument")
        if argument.type not in ("identifier", "field_expression", "this"):
            self.visit(argument)
        return False

    def on_identifier(self, node: Any) -> None:
        self.place(node)

    def place(self, node: Any) -> None:
        """Strides and offsets, by their names, where they are numbers to multiply or add."""
        text = self.text(node)
        if node.parent is None or node.parent.type not in ("binary_expression", "argument_list"):
            return
        if node.parent.type == "binary_expression":
            operator = self.text(node.parent.child_by_field_name("operator"))
            if operator not in ("*", "+", "-"):
                return
        if _STRIDES.search(text) and (node.type != "identifier" or text.endswith("stride")):
            self.add(node, "expression", Change("stride", "1", "1"), Change("stride", "0", "0"))
        elif _OFFSETS.search(text) and (node.type != "identifier" or text == "offset"):
            self.add(node, "expression", Change("stride", "0", "0"))

    def on_call_expression(self, node: Any) -> bool:
        function = node.child_by_field_name("function")
        arguments = node.child_by_field_name("arguments")
        name = self.text(function)
        if re.search(r"\.(fail|trap)$|^(ACL_RETURN_IF_FAILED|expect_\w+)$", name):
            return False
        self.attribute(node, name)
        self.exchange(node, name.removeprefix("std::"), arguments)
        if function.type == "field_expression":
            self.visit(function.child_by_field_name("argument"))
        parts = arguments.named_children
        if name in ("parallel_for", "parallel_range") and len(parts) > 2:
            parts = [parts[0], *parts[2:]]  # the second is how finely threads share
        if name.endswith(".run") and len(parts) == 2:
            parts = parts[1:]
        for part in parts:
            self.visit(part)
        return False

    def attribute(self, node: Any, name: str) -> None:
        kinds = {"number": ("0.0", "1.0"), "integer": ("0", "1"), "flag": ("false", "true")}
        accessor = re.fullmatch(r"(?:c|call)\.(number|integer|flag)", name)
        if accessor:
            self.add(node, "expression",
                     *(Change("attribute", v, v) for v in kinds[accessor[1]]))  # fmt: skip
        scalar = re.fullmatch(r"scalar_as<(\w+)>", name)
        if scalar:
            self.add(node, "expression", *(
                Change("attribute", f"{scalar[1]}({v})", v) for v in ("0", "1")
            ))  # fmt: skip

    def exchange(self, node: Any, name: str, arguments: Any) -> None:
        name = re.sub(r"<.*>$", "", name)
        values = ", ".join(self.text(a) for a in arguments.named_children)
        if name in ("isnan", "isinf", "is_nan"):
            self.add(node, "expression", Change("nan", "false", "false"))
        elif name == "isfinite":
            self.add(node, "expression", Change("nan", "true", "true"))
        elif name == "copysign":
            first = self.text(arguments.named_children[0])
            self.add(node, "expression", Change("zero", f"({first})", "without the sign"))
        elif name in _CALLS:
            other = _CALLS[name]
            text = {
                "": f"({values})", "1-erf": f"1 - std::erf({values})",
                "exp-1": f"std::exp({values}) - 1", "log1p": f"std::log(1 + ({values}))",
            }.get(other, f"{other}({values})")  # fmt: skip
            words = f"without {name}" if other == "" else text.partition("(")[0]
            self.add(node, "expression", Change("call", text, words))
        elif name.endswith("::infinity") or name == "infinity":
            self.add(node, "expression", Change(
                "nan", self.text(node).replace("infinity", "max"), "the largest number"
            ))  # fmt: skip
