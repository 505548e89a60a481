"""What counts as a change between two sets of declarations, and of which class it is."""

from aclnn_bindings.interface import catalog
from aclnn_bindings.interface.compare import Difference, diff
from aclnn_bindings.interface.signature import Declarations, Field, Kind, Param, Signature, Struct


def declare(prototype: str, **more: object) -> Declarations:
    """Declarations of one function `f` whose prototype is `int (int32_t n, const void * p)`."""
    returns, _, rest = prototype.partition(" (")
    params = tuple(
        Param(text.rsplit(" ", 1)[1], text.rsplit(" ", 1)[0], Kind.POINTER)
        for text in rest.rstrip(")").split(", ")
        if text
    )
    typedefs = {"aclrtStream": "void *", "aclError": "int"}
    enums = {"aclDataType": {"ACL_FLOAT": 0}, "aclKind": {"K": 1}}
    facts: dict[str, object] = {"typedefs": typedefs, "enums": enums, **more}
    return Declarations(functions={"f": Signature("f", returns, params, "h.h", 1)}, **facts)  # type: ignore[arg-type]


def change(before: str, after: str) -> tuple[str, str] | None:
    changed = diff(declare(before), declare(after)).changed
    assert len(changed) <= 1
    return (changed[0].effect, changed[0].detail) if changed else None


def effect(before: str, after: str) -> str | None:
    found = change(before, after)
    return found[0] if found else None


def test_a_wider_integer_breaks_the_abi() -> None:
    assert change("int (int32_t n)", "int (int64_t n)") == ("breaks ABI", "n: int32_t -> int64_t")


def test_float_to_double_breaks_the_abi() -> None:
    assert effect("int (float x)", "int (double x)") == "breaks ABI"


def test_another_number_of_parameters_breaks_the_abi() -> None:
    assert effect("int (int32_t a)", "int (int32_t a, void * b)") == "breaks ABI"


def test_a_pointer_to_another_object_breaks_the_abi() -> None:
    assert effect("int (aclIntArray * g)", "int (aclTensor * g)") == "breaks ABI"


def test_another_result_breaks_the_abi() -> None:
    assert effect("int (int32_t a)", "void * (int32_t a)") == "breaks ABI"


def test_const_matters_to_source_only() -> None:
    assert effect("int (const aclTensor * o)", "int (aclTensor * o)") == "source only"
    assert effect("int (const bool b)", "int (bool b)") == "source only"


def test_an_enum_under_another_name_matters_to_source_only() -> None:
    assert effect("int (aclDataType t)", "int (aclKind t)") == "source only"


def test_a_typedef_and_what_it_stands_for_are_one_type_to_the_abi() -> None:
    assert effect("int (aclrtStream s)", "int (void * s)") == "source only"
    assert effect("aclError (int32_t s)", "int (int32_t s)") == "source only"


def test_signedness_of_one_width_matters_to_source_only() -> None:
    assert effect("int (bool b)", "int (uint8_t b)") == "source only"


def test_a_renamed_parameter_is_reported_because_keywords_use_names() -> None:
    assert change("int (int32_t gradOuput)", "int (int32_t gradOutput)") == (
        "source only",
        "renamed: gradOuput -> gradOutput",
    )


def test_spaces_are_no_change() -> None:
    assert change("int (aclTensor ** p)", "int (aclTensor * * p)") is None


def test_an_enumerator_that_moves_breaks_the_abi() -> None:
    found = diff(declare("int ()", enums={"E": {"A": 1}}), declare("int ()", enums={"E": {"A": 2}}))
    assert [(c.name, c.effect, c.detail) for c in found.changed] == [
        ("E::A", "breaks ABI", "1 -> 2")
    ]


def test_an_end_mark_that_moves_does_not() -> None:
    before, after = {"E": {"E_MAX": 1}}, {"E": {"E_MAX": 2}}
    found = diff(declare("int ()", enums=before), declare("int ()", enums=after))
    assert found.breaking == ()
    assert len(found.changed) == 1


def test_a_struct_that_grows_breaks_the_abi_and_a_new_union_member_does_not() -> None:
    def union(size: int, *names: str) -> dict[str, Struct]:
        fields = tuple(Field(name, "int32_t", 0, 4) for name in names)
        return {"U": Struct("U", size, 4, fields, "h.h", 1, True)}

    grown = diff(declare("int ()", structs=union(4, "a")), declare("int ()", structs=union(8, "a")))
    joined = diff(
        declare("int ()", structs=union(4, "a")), declare("int ()", structs=union(4, "a", "b"))
    )
    assert [c.effect for c in grown.changed] == ["breaks ABI"]
    assert [c.effect for c in joined.changed] == ["source only"]


def newest() -> Difference:
    return diff(catalog.load("8.1.RC1"), catalog.load("2026-08"))


def test_no_function_of_8_1_changed_its_abi() -> None:
    assert newest().breaking == ()


def test_every_operator_of_8_1_is_still_there() -> None:
    assert [name for name in newest().removed_ops if name.startswith("aclnn")] == []
    assert len(newest().added_ops) == 359


def test_sixteen_first_phases_of_8_1_lost_only_const() -> None:
    lost = [
        c
        for c in newest().changed
        if c.name.endswith("GetWorkspaceSize") and "const aclTensor" in c.detail
    ]
    assert len(lost) == 16
