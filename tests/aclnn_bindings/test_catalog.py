"""The shipped catalogs: counts and facts that their sources state, and the loader's refusals."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from aclnn_bindings.install import products
from aclnn_bindings.interface import abi, catalog
from aclnn_bindings.interface.signature import Direction, Kind

TENSORS = (Kind.TENSOR, Kind.TENSOR_LIST)
FOLDER = Path(catalog.__file__).parents[1] / "catalogs"


def made_from() -> dict[str, str]:
    """File → digest, of the generator, its facts and what it wrote."""
    lines = (FOLDER / "made_from.sha256").read_text(encoding="utf-8").splitlines()
    return {name: digest for digest, name in (line.split("  ") for line in lines)}


@pytest.mark.parametrize("name", [n for n in made_from() if not n.startswith("facts/")])
def test_catalogs_are_what_the_generator_at_hand_wrote(name: str) -> None:
    text = (FOLDER / name).read_bytes().replace(b"\r\n", b"\n")
    assert hashlib.sha256(text).hexdigest() == made_from()[name], (
        f"{name} changed since the catalogs were made: run make.py on the facts again"
    )


def test_every_shipped_catalog_is_recorded() -> None:
    shipped = {path.name for path in FOLDER.glob("*.json")}
    assert shipped == {n for n in made_from() if n.endswith(".json") and "/" not in n}


@pytest.mark.skipif("CATALOG_FACTS" not in os.environ, reason="CATALOG_FACTS names no facts folder")
def test_the_generator_makes_the_shipped_catalogs_from_the_facts(tmp_path: Path) -> None:
    shutil.copy(FOLDER / "make.py", tmp_path)
    command = [sys.executable, str(tmp_path / "make.py"), os.environ["CATALOG_FACTS"]]
    subprocess.run(command, check=True)
    for name in ("made_from.sha256", *(p.name for p in FOLDER.glob("*.json"))):
        assert (tmp_path / name).read_bytes() == (FOLDER / name).read_bytes(), name


@pytest.fixture(params=catalog.versions())
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_counts_are_those_of_the_header_trees() -> None:
    old, new = catalog.load("8.1.RC1"), catalog.load("2026-08")
    assert (len(old.functions), len(new.functions)) == (2746, 3066)
    assert sum(not name.startswith("acldvpp") for name in old.ops) == 771
    assert len(new.ops) == 1130


def test_add_has_the_parameters_of_its_header(version: str) -> None:
    add = catalog.load(version).ops["aclnnAdd"]
    assert [(p.type, p.name, p.kind) for p in add.params] == [
        ("const aclTensor *", "self", Kind.TENSOR),
        ("const aclTensor *", "other", Kind.TENSOR),
        ("const aclScalar *", "alpha", Kind.SCALAR),
        ("aclTensor *", "out", Kind.TENSOR),
    ]
    assert add.params[3].direction is Direction.OUT
    assert "FLOAT16" in add.params[0].dtypes
    assert add.workspace.header == "aclnnop/aclnn_add.h"
    assert not add.irregular


def test_every_operator_follows_the_two_phase_abi(version: str) -> None:
    ops = catalog.load(version).ops
    irregular = {name: op.irregular for name, op in ops.items() if op.irregular}
    assert {n: why for n, why in irregular.items() if "returns" not in why[0]} == {}


def test_an_operand_that_is_written_is_not_marked_as_input(version: str) -> None:
    ops = catalog.load(version).ops
    assert ops["aclnnIndexPutImpl"].params[0].direction is Direction.INOUT
    assert ops["aclnnInplaceAdd"].params[0].direction is Direction.INOUT
    wrong = [
        f"{name}.{p.name}"
        for name, op in ops.items()
        for p in op.params
        if p.kind in TENSORS and p.name.endswith("Ref") and p.direction is Direction.IN
    ]
    assert wrong == []


def test_few_operators_have_no_output_that_is_known(version: str) -> None:
    ops = catalog.load(version).ops
    silent = [
        name
        for name, op in ops.items()
        if any(p.kind is Kind.TENSOR for p in op.params)
        and all(p.direction is Direction.IN for p in op.params if p.kind in TENSORS)
    ]
    assert len(silent) <= 5, silent


def test_every_parameter_type_has_a_kind(version: str) -> None:
    declared = catalog.load(version)
    unknown = Counter(
        p.type
        for s in declared.functions.values()
        if s.name.startswith("acl")
        for p in s.params
        if abi.kind_of(p.type, declared.typedefs, declared.enums, declared.structs) is None
    )
    assert unknown == {}


def test_members_of_structs_have_sizes_that_fit_their_struct(version: str) -> None:
    for struct in catalog.load(version).structs.values():
        ends = [field.offset + field.size for field in struct.fields]
        assert not ends or max(ends) <= struct.size, struct.name


def test_constants_answer_by_name_and_through_enums(version: str) -> None:
    declared = catalog.load(version)
    assert declared.constant("ACLNN_ERR_PARAM_INVALID") == 161002
    assert declared.constant("ACL_FLOAT16") == 1
    assert declared.constant("ACL_MEMCPY_DEVICE_TO_HOST") == 2


def test_an_unknown_version_is_refused_with_the_known_ones() -> None:
    with pytest.raises(catalog.UnknownVersionError, match=r"8\.1\.RC1.*9\.1\.0, 2026-08"):
        catalog.load("9.9")


@pytest.mark.parametrize(
    ("cann", "expected"),
    [("8.1.RC1", "8.1.RC1"), ("8.1.RC1.1", "8.1.RC1"), ("8.1.RC1.alpha002", None),
     ("8.1.RC10", None), ("9.0.0", "9.0.0"), ("9.0.1", "9.0.0"), ("8.5.0.alpha002", None),
     ("9.9.0", None), ("2026-08", "2026-08"), (None, None), ("", None)],
)  # fmt: skip
def test_a_release_has_the_catalog_of_exactly_its_interface(
    cann: str | None, expected: str | None
) -> None:
    assert catalog.version_of(cann) == expected


def test_the_library_of_a_function_is_named_where_known() -> None:
    assert "libnnopbase.so" in catalog.library_of("2026-08", "aclCreateTensor")
    assert "libopapi_math.so" in catalog.library_of("2026-08", "aclnnAdd")
    assert catalog.library_of("2026-08", "noSuchFunction") == ""


def test_every_catalog_names_its_sources(version: str) -> None:
    assert "@" in catalog.sources(version)


def test_operator_facts_use_the_names_of_the_headers() -> None:
    ops = catalog.load("2026-08").ops
    specs = products._specs()["ops"]
    assert len(specs) > 1100
    for name, row in specs.items():
        known = {p.name for p in ops[name].params}
        assert set(row["params"]) <= known, name
        assert set(row.get("nulls", ())) <= known, name


def test_exclusions_of_a_product_shorten_the_dtype_list() -> None:
    everywhere, on_910 = products.support("aclnnAdd"), products.support("aclnnAdd", "910")
    assert everywhere is not None
    assert on_910 is not None
    assert "BFLOAT16" in everywhere.dtypes["self"]
    assert "BFLOAT16" not in on_910.dtypes["self"]
    assert "FLOAT" in on_910.dtypes["self"]


@pytest.mark.parametrize(
    ("soc", "product"),
    [("Ascend910B3", "910b"), ("Ascend910B", "910"), ("Ascend910_9391", "A3"),
     ("Ascend310P3", "310p"), ("Ascend950PR_9599", "950"), ("Ascend310B4", "310b"),
     ("Kirin", None)],
)  # fmt: skip
def test_a_soc_name_means_one_product(soc: str, product: str | None) -> None:
    assert products.product_of(soc) == product


def test_data_files_hold_one_function_a_line() -> None:
    raw = (catalog._DATA / "2026-08.json").read_text()
    row = next(line for line in raw.splitlines() if line.startswith('"aclnnAddGetWorkspaceSize":'))
    assert json.loads("{" + row.rstrip(",") + "}")["aclnnAddGetWorkspaceSize"][0] == "aclnnStatus"


def test_no_tensor_has_at_least_as_many_dimensions_as_there_can_be() -> None:
    """Documents that say "8" mean at most: none asks for eight dimensions or more."""
    least = {
        (op, name): bounds[0]
        for op in catalog.load("2026-08").ops
        if (document := products.support(op)) is not None
        for name, bounds in document.ranks.items()
        if bounds[0] >= 8
    }
    assert least == {}
