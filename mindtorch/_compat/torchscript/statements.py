"""Lowers statements."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from .errors import FrontendError, NotSupportedError, ScriptError, UnsupportedNodeError, excerpt
from .expressions import Expressions
from .graph import Block, NotLowered, Place, ScriptValue
from .iteration import element, is_unrolled, iterable, length, static_length
from .kinds import INT, NONE, STR, TENSOR, unified
from .matching import Supplied, call_operator, converted, unpacked
from .scope import Condition, Frame, Refinements
from .sugar import Raised, Simple, Sugar, TupleOfThings

_MOST = 2**63 - 1
_IN_PLACE = {
    ast.Add: ("add_", "add"), ast.Sub: ("sub_", "sub"), ast.Div: ("div_", "div"),
    ast.Mult: ("mul_", "mul"), ast.Mod: ("fmod_", "fmod"), ast.BitOr: ("bitwise_or", "__or__"),
    ast.BitAnd: ("bitwise_and", "__and__"), ast.BitXor: ("bitwise_xor", "__xor__"),
    ast.LShift: ("__lshift__", "__lshift__"), ast.RShift: ("__irshift__", "__rshift__"),
    ast.Pow: ("pow", "pow"),
}  # fmt: skip
_MAGIC = {ast.Add: "add", ast.Sub: "sub", ast.Div: "truediv", ast.Mult: "mul", ast.Mod: "mod"}


class StatementLowering(Expressions):
    """Statements, over expressions."""

    def statements(self, body: Sequence[ast.stmt]) -> None:
        """Lower statements up to one that leaves the block."""
        assert self.frame is not None
        for statement in body:
            try:
                self._statement(statement)
            except (ScriptError, FrontendError) as error:
                error.found_at(self.source, statement)
                raise
            if self.frame.block in self.left:
                return

    def _statement(self, statement: ast.stmt) -> None:
        lower = getattr(self, f"_{type(statement).__name__.lower()}", None)
        if lower is not None:
            lower(statement)
        elif isinstance(statement, ast.FunctionDef):
            raise UnsupportedNodeError("function definitions aren't supported")
        else:
            words = {"Try": "try blocks"}
            name = type(statement).__name__
            raise UnsupportedNodeError(f"{words.get(name, name.lower())} aren't supported")

    def _pass(self, node: ast.Pass) -> None:
        pass

    def _expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return
        self.sugar(node.value)

    def _return(self, node: ast.Return) -> None:
        self.give_back(self.place(node), node.value)

    def give_back(self, place: Place, expression: ast.expr | None) -> None:
        """Leave the function with a value."""
        if expression is None:
            value = self.graph.constant(None, place)
        else:
            value = self.value(expression, self.declared)
        if self.declared is not None:
            goal = self.declared
            if not (goal == TENSOR and value.kind == NONE):
                value = converted(self.graph, place, goal, value, True)
            if not value.kind.is_a(goal):
                raise ScriptError(
                    f"Return value was annotated as having type {goal.annotation()} but is"
                    f" actually of type {value.kind.annotation()}",
                    True,
                )
            self.returned = goal
        else:
            both = unified(self.returned or value.kind, value.kind)
            if both is None:
                assert self.returned is not None
                raise ScriptError(
                    f"Previous return statement returned a value of type"
                    f" {self.returned.annotation()} but this return statement returns a value of"
                    f" type {value.kind.annotation()}",
                    True,
                )
            self.returned = both
        if self.returned.kind == "Any" and value.kind.kind != "Any":
            value = self.graph.insert("prim::unchecked_cast", [value], (self.returned,)).output
        self.graph.insert("prim::ReturnStmt", [value])
        assert self.frame is not None
        self.left.add(self.frame.block)

    def _break(self, node: ast.Break) -> None:
        self._jump("prim::BreakStmt", "break", node)

    def _continue(self, node: ast.Continue) -> None:
        self._jump("prim::ContinueStmt", "continue", node)

    def _jump(self, kind: str, word: str, node: ast.stmt) -> None:
        if not self.loops:
            raise ScriptError(f"SyntaxError: '{word}' outside loop", True)
        if self.loops[-1] == "unrolled":
            raise ScriptError(
                "Because we emit iteration over modulelists or tuples as unrolled loops, we do not"
                " support break or continue inside the body of these loops"
            )
        self.graph.insert(kind, (), (), self.place(node))

    # Ifs.

    def _if(self, node: ast.If) -> None:
        condition, before = self.condition(node.test), dict(self.errors)
        self.branches(
            self.place(node), condition,
            lambda: self.statements(node.body), lambda: self.statements(node.orelse),
        )  # fmt: skip
        for name, error in self.errors.items():
            if before.get(name) != error:
                self.errors[name] = f"\n{error}:\n{excerpt(self.source, node)}"

    def _assert(self, node: ast.Assert) -> None:
        condition = self.condition(node.test)

        def fail() -> None:
            place = self.place(node)
            text = self.value(node.msg) if node.msg else self.graph.constant("", place)
            message = self.graph.constant("AssertionError: ", place)
            if not text.kind.is_a(STR):
                text = self.operator(place, "aten::str", text)
            message = self.operator(place, "aten::add", message, text)
            self._raise_message(place, message, None)

        self.branches(self.place(node), condition, lambda: None, fail)

    def branches(
        self, place: Place, condition: Condition,
        true: Callable[[], None], false: Callable[[], None],
    ) -> None:  # fmt: skip
        """An if; of one whose condition is known, one branch."""
        refinements = condition.refinements
        if condition.known is not None:
            kinds = refinements.true if condition.known else refinements.false
            self.refine(place, kinds)
            (true if condition.known else false)()
            return
        node = self.graph.insert("prim::If", [condition.value], (), place)
        blocks = node.add_block(), node.add_block()
        first = self._branch(blocks[0], place, true, refinements)
        second = self._branch(blocks[1], place, false, refinements.swapped())
        gone = [b in self.left for b in blocks]
        assert self.frame is not None
        if all(gone):
            self.left.add(self.frame.block)
        names: set[str] = set()
        for frame, other, block, leaves, word in (
            (first, second, blocks[1], gone[1], "false"),
            (second, first, blocks[0], gone[0], "true"),
        ):
            for name in frame.kinds:
                with self.graph.at(block):
                    if self.find(name, other) is not None or leaves:
                        names.add(name)
                    else:
                        self.errors[name] = f"{name} is not defined in the {word} branch"
        for name in sorted(names):
            self._merge(name, (first, second), blocks, gone)

    def _branch(
        self, block: Block, place: Place, body: Callable[[], None], refinements: Refinements
    ) -> Frame:
        with self.framed(block) as frame:
            self.refine(place, refinements.true)
            body()
        return frame

    def _merge(
        self, name: str, frames: tuple[Frame, Frame], blocks: tuple[Block, Block], gone: list[bool]
    ) -> None:
        values: list[ScriptValue | None] = [None, None]
        for index in (0, 1):
            if not gone[index]:
                with self.graph.at(blocks[index]):
                    hit = self.find(name, frames[index])
                    values[index] = self.as_value(hit) if hit else None
        if all(gone):
            return
        for index in (0, 1):
            if gone[index]:
                other = values[1 - index]
                assert other is not None
                with self.graph.at(blocks[index]):
                    value = self.graph.insert("prim::Uninitialized", (), (other.kind,)).output
                    self.graph.insert("prim::Store", [value], name=name)
                values[index] = value
        one, other = values
        assert one is not None
        assert other is not None
        assert self.frame is not None
        before = self.find(name, self.frame)
        both = unified(one.kind, other.kind)
        if both is None:
            error = (
                f"Type mismatch: {name} is set to type {one.kind.annotation()} in the true branch"
                f" and type {other.kind.annotation()} in the false branch"
            )
            if before is not None:
                raise ScriptError(error)
            self.errors[name] = error
            return
        self.frame.kinds[name] = both

    # Loops.

    def _while(self, node: ast.While) -> None:
        self._loop(self.place(node), None, None, node.test, lambda: self.statements(node.body))

    def _for(self, node: ast.For) -> None:
        self.for_each(
            self.place(node), node.target, self.sugar(node.iter), lambda: self.statements(node.body)
        )

    def for_each(
        self, place: Place, target: ast.expr, what: Sugar, body: Callable[[], None]
    ) -> None:
        """A loop over something, written out where its length is known."""
        things = iterable(self, place, what)
        if not is_unrolled(things):
            self._loop(place, things, target, None, body)
            return
        self.loops.append("unrolled")
        for index in range(static_length(things) or 0):
            number = self.number(index, place)
            self.assign(target, element(self, place, things, number, index), self.place(target))
            body()
        self.loops.pop()

    def _loop(
        self, place: Place, things: Sugar | None, target: ast.expr | None,
        test: ast.expr | None, body: Callable[[], None],
    ) -> None:  # fmt: skip
        most = self.number(_MOST, place) if things is None else length(self, place, things)
        node = self.graph.insert("prim::Loop", (), (), place)
        block, header = node.add_block(), node.add_block()
        if test is not None:
            with self.framed(header):
                value = self.truth(self.value(test), self.place(test))
        else:
            with self.graph.at(node):
                value = self.graph.constant(True, place)
        header.exit.add_input(value)
        node.add_input(most)
        self.loops.append("loop")
        index = block.entry.add_output(INT)
        with self.framed(block):
            if things is not None and target is not None:
                each = self.as_value(element(self, place, things, index, None))
                self.assign(target, Simple(each), place)
            body()
        self.loops.pop()

    def for_comprehension(
        self, place: Place, generator: ast.comprehension, body: Callable[[], None]
    ) -> None:
        """The loop of a comprehension."""
        if generator.ifs:
            raise NotSupportedError("Comprehension ifs are not supported yet")
        self.for_each(place, generator.target, self.sugar(generator.iter), body)

    # Raising.

    def _raise(self, node: ast.Raise) -> None:
        if node.exc is None:
            raise NotLowered("a raise without an exception")
        place = self.place(node)
        raised = self.sugar(node.exc)
        if not isinstance(raised, Raised):
            raise ScriptError("exceptions must derive from BaseException")
        message = raised.message or self.graph.constant("", place)
        self._raise_message(place, message, raised.class_name)

    def _raise_message(self, place: Place, message: ScriptValue, name: ScriptValue | None) -> None:
        if not message.kind.is_a(STR):
            message = self.operator(None, "aten::str", message)
        passed = [Supplied(message), *([Supplied(name)] if name is not None else [])]
        call_operator(self.graph, place, "prim::RaiseException", passed)
        assert self.frame is not None
        self.left.add(self.frame.block)

    # Assignments.

    def _assign(self, node: ast.Assign) -> None:
        place = self.place(node)
        if len(node.targets) == 1:
            self._assign_one(node.targets[0], node.value, place)
            return
        name = self.temporary("$tmp_assign_")
        self.set(self.place(node.value), name, self.sugar(node.value))
        for target in node.targets:
            read = ast.copy_location(ast.Name(name, ast.Load()), node.value)
            self._assign_one(target, read, place)

    def _assign_one(self, target: ast.expr, value: ast.expr, place: Place) -> None:
        if isinstance(target, ast.Name):
            self.set(self.place(target), target.id, self.sugar(value))
        elif isinstance(target, ast.Tuple | ast.List):
            self.assign(target, self.sugar(value), self.place(value))
        elif isinstance(target, ast.Attribute):
            owner = self.sugar(target.value)
            self.set_attribute(owner, target.attr, self.value(value), place)
        elif isinstance(target, ast.Subscript):
            passed = Supplied(self.value(value), place=self.place(value))
            self.assign_item(target, passed, place)
        else:
            raise NotLowered("unexpected expression on left-hand side of assignment")

    def assign(self, target: ast.expr, sugar: Sugar, place: Place) -> None:
        """Write one thing to a target, or its members to the members of a target."""
        if isinstance(target, ast.Name):
            self.set(self.place(target), target.id, sugar)
        elif isinstance(target, ast.Subscript):
            self.assign_item(target, Supplied(self.as_value(sugar), place=place), place)
        elif isinstance(target, ast.Tuple | ast.List):
            self._assign_members(target, sugar, place)
        else:
            raise NotLowered("unexpected expression on the left-hand side")

    def _assign_members(self, target: ast.Tuple | ast.List, sugar: Sugar, place: Place) -> None:
        starred = [i for i, t in enumerate(target.elts) if isinstance(t, ast.Starred)]
        goal = len(target.elts) - len(starred)
        members = self.members(sugar, None if starred else goal)
        if len(members) < goal:
            least = "at least " * bool(starred)
            raise ScriptError(f"need {least}{goal} values to unpack but found only {len(members)}")
        if len(members) > goal and not starred:
            raise ScriptError(f"too many values to unpack: need {goal} but found {len(members)}")
        at = 0
        for each in target.elts:
            if isinstance(each, ast.Starred):
                count = len(members) - goal
                rest = self.tuple_of([self.as_value(m) for m in members[at : at + count]])
                assert isinstance(each.value, ast.Name)
                self.set_value(self.place(each.value), each.value.id, rest)
                at += count
            else:
                self.assign(each, members[at], place)
                at += 1

    def _annassign(self, node: ast.AnnAssign) -> None:
        if node.value is None:
            raise NotLowered("an annotation without a value")
        kind = self.annotation(node.annotation)
        if isinstance(node.target, ast.Name):
            value = self.sugar(node.value, kind)
            self.set(self.place(node.target), node.target.id, value, kind)
        elif isinstance(node.target, ast.Attribute):
            owner = self.sugar(node.target.value)
            value = self.sugar(node.value, kind)
            fresh = self.as_value(value)
            self.set_attribute(owner, node.target.attr, fresh, self.place(node.target))
        else:
            raise NotLowered("an annotated item")

    def _augassign(self, node: ast.AugAssign) -> None:
        target = node.target
        if isinstance(target, ast.Name):
            result = self._augmented(node, self.value(target))
            self.set_value(self.place(target), target.id, result)
        elif isinstance(target, ast.Attribute):
            owner = self.sugar(target.value)
            before = self.as_value(self.attribute(owner, target.attr, self.place(target)))
            result = self._augmented(node, before)
            self.set_attribute(owner, target.attr, result, self.place(node))
        else:
            assert isinstance(target, ast.Subscript)
            self._augment_item(node, target)

    def _in_place_name(self, node: ast.AugAssign, tensor: bool) -> str:
        names = _IN_PLACE.get(type(node.op))
        if names is None:
            raise NotLowered(f"augmented assignment of {type(node.op).__name__}")
        return f"aten::{names[0 if tensor else 1]}"

    def _augmented(self, node: ast.AugAssign, before: ScriptValue) -> ScriptValue:
        place = self.place(node)
        if before.kind.kind == "Class":
            value = self.value(node.value)
            word = _MAGIC.get(type(node.op), "")
            for name in (f"__i{word}__", f"__{word}__"):
                method = self.method_of(before, name)
                if method is not None:
                    return self.as_value(self.call_sugar(method, place, [Supplied(value)], {}))
            raise ScriptError(f"Cannot emit inplace op on {before.kind}")
        value = self.value(node.value)
        tensor = before.kind == TENSOR or before.kind.kind == "List"
        return self.operator(place, self._in_place_name(node, tensor), before, value)

    def _augment_item(self, node: ast.AugAssign, target: ast.Subscript) -> None:
        place, base = self.place(node), self.value(target.value)
        if base.kind == TENSOR:
            sliced, indices = self.int_and_slice_indexing(self.place(target), base, target)
            value, name = Supplied(self.value(node.value)), self._in_place_name(node, True)
            if not indices:
                call_operator(self.graph, place, name, [value], {}, Supplied(sliced))
                return
            listed = self.list_of_indices(indices)
            item = self.operator(place, "aten::index", sliced, listed)
            item = call_operator(self.graph, place, name, [value], {}, Supplied(item))
            self.operator(place, "aten::index_put_", sliced, listed, item)
            return
        if base.kind.kind not in ("List", "Dict"):
            raise ScriptError(f"{base.kind.annotation()} does not support augmented assignment.")
        inner = base.kind.args[0]
        index = self.value(target.slice)
        value = Supplied(self.value(node.value))
        item = self.operator(place, "aten::__getitem__", base, index)
        tensor = inner == TENSOR or inner.kind == "List"
        name = self._in_place_name(node, tensor)
        item = call_operator(self.graph, place, name, [Supplied(item), value])
        self.operator(place, "aten::_set_item", base, index, item)

    def _delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                frame = self.frame
                while frame is not None:
                    frame.kinds.pop(target.id, None)
                    frame.others.pop(target.id, None)
                    frame = frame.outer
            elif isinstance(target, ast.Subscript):
                base = self.sugar(target.value)
                index = self.value(target.slice)
                value = self.as_value(base)
                passed = [value, index]
                schema = self.schema_of("aten::Delete")
                self.graph.insert("aten::Delete", passed, (), self.place(target), schema=schema)
            else:
                raise NotLowered("del of something else than a variable or an item")

    def _with(self, node: ast.With) -> None:
        entered = []
        for item in node.items:
            value = self.value(item.context_expr)
            enter = self.method_of(value, "__enter__")
            if enter is None or self.method_of(value, "__exit__") is None:
                raise NotLowered("with of something else than an object of the language")
            fresh = self.graph.insert("prim::Enter", [value], (enter.function.schema.returns[0],))
            entered.append(value)
            if isinstance(item.optional_vars, ast.Name):
                name = item.optional_vars
                self.set_value(self.place(name), name.id, fresh.output)
        self.statements(node.body)
        for value in reversed(entered):
            self.graph.insert("prim::Exit", [value], (TENSOR,))

    def members(self, sugar: Sugar, count: int | None) -> list[Sugar]:
        """What a tuple, or a list of known length, consists of."""
        if isinstance(sugar, TupleOfThings):
            return list(sugar.members)
        value = self.as_value(sugar)
        if value.kind.kind == "Tuple":
            return [Simple(v) for v in unpacked(self.graph, value)]
        if value.kind.kind == "List" and count is not None:
            node = self.graph.insert("prim::ListUnpack", [value], [value.kind.args[0]] * count)
        else:
            raise ScriptError(f"{value.kind.annotation()} cannot be used as a tuple")
        return [Simple(v) for v in node.outputs]
