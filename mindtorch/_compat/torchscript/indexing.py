"""Lowers items and slices."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .calls import Calls
from .errors import ScriptError
from .graph import Place, ScriptValue, constant_of
from .kinds import INT, NONE, TENSOR, list_of, optional
from .matching import Supplied, call_operator, may_be_list
from .sugar import ModuleObject, OperatorCall, Simple, Sugar, TupleOfThings

_INDEX = optional(TENSOR)


def _parts(node: ast.Subscript) -> list[ast.expr]:
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def _is_dots(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis


class Indexing(Calls):
    """Items and slices, over calls."""

    def subscript(self, node: ast.Subscript) -> Sugar:
        """`base[index]`."""
        base = self.sugar(node.value)
        parts, place = _parts(node), self.place(node)
        if len(parts) != 1 or _is_dots(parts[0]):
            return Simple(self._many(place, self.as_value(base), node))
        if isinstance(base, ModuleObject):
            return self._module_item(base, parts[0])
        if isinstance(parts[0], ast.Slice):
            value = self.as_value(base)
            dim = self.graph.constant(0, place) if value.kind == TENSOR else None
            return Simple(self._slice(place, value, dim, parts[0]))
        if isinstance(base, TupleOfThings):
            known = constant_of(self.value(parts[0]))
            if known is not None:
                return base.members[known[0]]
        value = self.as_value(base)
        index = self.value(parts[0])
        if value.kind.kind == "Tuple":
            return Simple(self._tuple_item(value, index))
        if value.kind == TENSOR:
            return Simple(self._many(place, value, node))
        method = self.method_of(value, "__getitem__")
        if method is not None:
            return self.call_sugar(method, place, [Supplied(index)], {})
        return self.item(place, value, index)

    def _module_item(self, base: ModuleObject, part: ast.expr) -> Sugar:
        modules = self.submodules(base)[1]
        known = constant_of(self.value(part)) if not isinstance(part, ast.Slice) else None
        if known is None:
            raise ScriptError(
                "Unable to extract string literal index. ModuleDict indexing is only supported with"
                " string literals. For example, 'i = \"a\"; self.layers[i](x)' will fail because i"
                " is not a literal. Enumeration of ModuleDict is supported, e.g. 'for k, v in"
                " self.items(): ...'"
            )
        if isinstance(known[0], str):
            return modules[list(base.type.modules).index(known[0])]
        return modules[known[0]]

    def _tuple_item(self, value: ScriptValue, index: ScriptValue) -> ScriptValue:
        kinds = value.kind.args
        known = constant_of(index)
        if index.kind != INT:
            raise ScriptError("tuple index must be an integer")
        if known is None:
            if not kinds or not may_be_list(value.kind, list_of(kinds[0])):
                raise ScriptError(
                    f"Cannot index into a {value.kind.annotation()} with a non-integer literal"
                    " because we cannot resolve the output type"
                )
            kind = kinds[0]
        elif not -len(kinds) <= known[0] < len(kinds):
            raise ScriptError(
                f"Tuple index out of range. Tuple is length {len(kinds)} and index is {known[0]}"
            )
        else:
            kind = kinds[known[0]]
        return self.graph.insert("prim::TupleIndex", [value, index], (kind,)).output

    def _slice(
        self, place: Place, value: ScriptValue, dim: ScriptValue | None, part: ast.Slice
    ) -> ScriptValue:
        bounds = [None if b is None else self.value(b) for b in (part.lower, part.upper, part.step)]
        if value.kind.kind == "Tuple":
            return self._tuple_slice(value, bounds)
        args = [Supplied(value), *([Supplied(dim)] if dim is not None else [])]
        if bounds[2] is None:
            bounds[2] = self.graph.constant(1, place)
        names = zip(("start", "end", "step"), bounds, strict=True)
        options = {name: Supplied(bound) for name, bound in names if bound is not None}
        return call_operator(self.graph, place, "aten::slice", args, options)

    def _tuple_slice(self, value: ScriptValue, bounds: Sequence[ScriptValue | None]) -> ScriptValue:
        known = [None if b is None else constant_of(b) for b in bounds]
        if any(b is not None and k is None for b, k in zip(bounds, known, strict=True)):
            raise ScriptError("tuple slice indices must be integer constants")
        numbers = [k[0] if k else None for k in known]
        kinds = value.kind.args
        start, end, step = slice(*numbers).indices(len(kinds))
        members = []
        for number in range(start, end, step):
            index = self.graph.constant(number)
            members.append(
                self.graph.insert("prim::TupleIndex", [value, index], (kinds[number],)).output
            )
        return self.tuple_of(members)

    def _many(self, place: Place, value: ScriptValue, node: ast.Subscript) -> ScriptValue:
        if value.kind != TENSOR:
            raise ScriptError(
                "Unsupported operation: attempted to use multidimensional indexing on a non-tensor"
                " type"
            )
        sliced, indices = self.int_and_slice_indexing(place, value, node)
        if not indices:
            return sliced
        return self.operator(place, "aten::index", sliced, self.list_of_indices(indices))

    def list_of_indices(self, indices: Sequence[ScriptValue]) -> ScriptValue:
        """A list of tensors and None."""
        return self.graph.insert("prim::ListConstruct", indices, (list_of(_INDEX),)).output

    def int_and_slice_indexing(
        self, place: Place, value: ScriptValue, node: ast.Subscript
    ) -> tuple[ScriptValue, list[ScriptValue]]:
        """A tensor after the indices that are numbers, slices and None, and those that are left."""
        parts = _parts(node)
        dims = [0] * len(parts)
        hit: list[ScriptValue | None] = [None] * len(parts)
        dim, at = 0, 0
        while at < len(parts) and not _is_dots(parts[at]):
            dims[at] = dim
            hit[at], step = self._index(parts[at], place, False)
            dim, at = dim + step, at + 1
        dim = -1
        for last in range(len(parts) - 1, at, -1):
            if _is_dots(parts[last]):
                raise ScriptError("An index can only have a single ellipsis ('...')")
            dims[last] = dim
            hit[last], step = self._index(parts[last], place, True)
            dim -= step
        rest: dict[int, ScriptValue] = {}
        for part, dim, index in zip(parts, dims, hit, strict=True):
            if isinstance(part, ast.Slice):
                value = self._slice(place, value, self.graph.constant(dim, place), part)
            elif index is None:
                continue
            elif index.kind == NONE:
                number = self.graph.constant(dim, place)
                value = self.operator(place, "aten::unsqueeze", value, number)
            elif index.kind == INT:
                number = self.graph.constant(dim, place)
                value = self.operator(place, "aten::select", value, number, index)
            else:
                rest[dim] = index
        count = max(rest, default=-1) + 1
        return value, [
            rest[i] if i in rest else self.graph.constant(None) for i in range(count)
        ]  # fmt: skip

    def _index(
        self, part: ast.expr, place: Place, from_end: bool
    ) -> tuple[ScriptValue | None, int]:
        """An index's value, and how many dimensions it leaves; None for a slice."""
        if isinstance(part, ast.Slice):
            return None, 1
        self.sugar(part)
        index = self.value(part)
        if index.kind.kind == "List":
            options = {"dtype": Supplied(constant=4)}
            index = call_operator(self.graph, None, "aten::tensor", [Supplied(index)], options)
        if index.kind == NONE:
            return index, 0 if from_end else 1
        if index.kind == INT:
            return index, 1 if from_end else 0
        if not index.kind.is_a(_INDEX):
            raise ScriptError(
                "Unsupported operation: indexing tensor with unsupported index type"
                f" '{index.kind.annotation()}'. Only ints, slices, lists and tensors are supported"
            )
        if from_end:
            raise ScriptError("Ellipses followed by tensor indexing is currently not supported")
        return index, 1

    def assign_item(self, target: ast.Subscript, passed: Supplied, place: Place) -> None:
        """`base[index] = value`."""
        base = self.value(target.value)
        local = self.place(target)
        if base.kind == TENSOR:
            sliced, indices = self.int_and_slice_indexing(local, base, target)
            value = self._as_tensor(passed.here(self.graph), sliced)
            if not indices:
                self.operator(place, "aten::copy_", sliced, value)
                return
            listed = self.list_of_indices(indices)
            self.operator(place, "aten::index_put_", sliced, listed, value)
            return
        parts = _parts(target)
        if len(parts) != 1 or isinstance(parts[0], ast.Slice):
            raise ScriptError("Sliced expression not yet supported for subscripted assignment. ")
        if base.kind.kind == "Tuple":
            raise ScriptError(f"{base.kind.annotation()} does not support subscripted assignment")
        args = [Supplied(base), Supplied(self.value(parts[0])), passed]
        self.call_sugar(OperatorCall("aten::_set_item", None, "__setitem__"), place, args, {})

    def _as_tensor(self, value: ScriptValue, like: ScriptValue) -> ScriptValue:
        if value.kind.kind not in ("Scalar", "int", "float", "bool"):
            return value
        dtype = self.operator(None, "prim::dtype", like)
        device = self.operator(None, "prim::device", like)
        return self.operator(None, "aten::tensor", value, dtype=dtype, device=device)
