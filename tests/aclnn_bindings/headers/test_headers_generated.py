"""The parser on trees that declare whole catalogs in all the spellings of real headers."""

import re

import header_generator
import pytest

from aclnn_bindings.interface import catalog
from aclnn_bindings.interface.headers import parse_tree
from aclnn_bindings.interface.signature import Declarations, Kind, Signature

# The other releases declare what one of these two does, to a few rows.
VERSIONS = [
    version if version in ("8.3.RC1", "2026-08") else pytest.param(version, marks=pytest.mark.slow)
    for version in catalog.versions()
]


def spelled(ctype: str) -> str:
    """A type without spaces; the DVPP headers write void as a macro."""
    return re.sub(r"\s+", "", ctype.replace("hi_void", "void"))


def parameters(signature: Signature) -> list[tuple[str, str]]:
    """Types and names; `(void)` is no parameter."""
    shown = [(spelled(p.type), p.name if p.type != "..." else "") for p in signature.params]
    return shown if shown != [("void", "")] else []


@pytest.fixture(scope="module", params=VERSIONS)
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Declarations, Declarations, header_generator.Planted]:
    """A catalog, what the parser reads in a tree made from it, and what was planted there."""
    known = catalog.load(request.param)
    planted = header_generator.generate(known)
    root = tmp_path_factory.mktemp("tree with spaces")
    header_generator.write(planted.files, root)
    return known, parse_tree([root]), planted


Pair = tuple[Declarations, Declarations, header_generator.Planted]


def test_every_function_of_the_catalog_is_found_and_no_other(pair: Pair) -> None:
    known, found, _ = pair
    assert set(found.functions) == set(known.functions)


def test_every_parameter_has_its_type_and_name(pair: Pair) -> None:
    known, found, _ = pair
    wrong = {
        name: (signature, found.functions[name])
        for name, signature in known.functions.items()
        if parameters(signature) != parameters(found.functions[name])
        or spelled(signature.returns) != spelled(found.functions[name].returns)
    }
    assert not wrong


def test_dtypes_in_comments_are_those_of_the_catalog(pair: Pair) -> None:
    known, found, _ = pair
    checked = 0
    for name, signature in found.functions.items():
        for param, wanted in zip(signature.params, known.functions[name].params, strict=False):
            if param.dtypes:
                assert param.dtypes == wanted.dtypes, f"{name} {param.name}"
                checked += 1
    assert checked > 500


def test_operators_pair_as_in_the_catalog(pair: Pair) -> None:
    known, found, _ = pair
    assert set(found.ops) == set(known.ops)
    assert all(found.ops[name].irregular == () for name in found.ops)


def test_enums_and_constants_have_their_values(pair: Pair) -> None:
    known, found, _ = pair
    assert {n: dict(m) for n, m in known.enums.items() if m}.items() <= {
        n: dict(m) for n, m in found.enums.items()
    }.items()
    assert {n: v for n, v in known.constants.items() if found.constants.get(n) != v} == {}


def test_struct_layouts_have_the_sizes_and_offsets_of_the_catalog(pair: Pair) -> None:
    known, found, _ = pair
    compared = 0
    for name, struct in found.structs.items():
        wanted = known.structs[name]
        assert (struct.size, struct.align) == (wanted.size, wanted.align), name
        if header_generator.plain(wanted):
            places = [(f.name, f.offset) for f in struct.fields]
            assert places == [(f.name, f.offset) for f in wanted.fields], name
            compared += 1
    assert compared >= 50


def test_only_what_was_planted_is_skipped(pair: Pair) -> None:
    _, found, planted = pair
    others = [s for s in found.skipped if "__cplusplus" not in s.reason]
    # Three types of the newest catalog are used by functions and declared by none of its headers.
    undeclared = {"HcclConfig", "HcclConfigType", "HcclConfigValue"}
    assert {s.text.split(": ")[1] for s in others} <= undeclared
    assert all(s.reason == "type is not declared" for s in others)
    assert sum("__cplusplus" in s.reason for s in found.skipped) == planted.skipped


def test_copies_in_level2_add_no_declarations(pair: Pair) -> None:
    _, found, planted = pair
    assert planted.copies > 100
    assert len(found.sources) == len(planted.files)
    counted = sum(1 for name in found.sources if "level2" in name)
    assert counted >= planted.copies


def test_first_phase_kinds_are_those_a_launch_can_pass(pair: Pair) -> None:
    _, found, _ = pair
    passable = set(Kind) - {Kind.STRUCT, Kind.VARARGS, Kind.VOID, Kind.FUNCTION}
    for op in found.ops.values():
        assert {p.kind for p in op.params} <= passable, op.name
