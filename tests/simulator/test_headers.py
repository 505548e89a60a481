"""The install's headers compile alone, say what the catalog says, and declare what is exported."""

import json
import re
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from compiled import compiler, install, scratch
from elftools.elf.elffile import ELFFile

import aclnn_bindings

DECLARED = re.compile(r"^(?:ACL_FUNC_VISIBILITY|msptiResult|bool) [^;(]*?\b(\w+)\(", re.MULTILINE)
# What a header gives to those after it, other than functions.
DEFINES = re.compile(
    r"\b(struct|enum|union|class|typedef|using|namespace|template|constexpr|const \w+ \w+ =)\b"
    r"|# *(define|undef|pragma|elif|else)\b"
)
# Exported without a public header in CANN either, or between the simulator's own libraries.
UNDECLARED = re.compile(
    r"(Msprof|Nnopbase|rt|aclsim_|mstx|hal|drv)\w+|aclprofWarmup|UnInitHugeMemThreadLocal"
    r"|InitHugeMemThreadLocal|ReleaseHugeMem"
    r"|aclnnFusedInferAttentionScoreV[345]GetMaxWorkspaceSize"
)


def headers() -> list[str]:
    root = install() / "include"
    return sorted(str(p.relative_to(root)) for p in root.rglob("*.h"))


def catalog() -> Any:
    folder = Path(aclnn_bindings.__file__).parent / "catalogs"
    return json.loads((folder / "2026-08.json").read_text(encoding="utf-8"))


def exported() -> dict[str, str]:
    """C symbols defined by the install's libraries → library, `libopapi.so` before its parts; C++
    names are internal."""
    found = {}
    for library in sorted((install() / "lib64").glob("lib*.so")):
        if "openblas" in library.name:
            continue
        with library.open("rb") as file:
            table = ELFFile(file).get_section_by_name(".dynsym")
            for symbol in table.iter_symbols():
                kind = symbol["st_info"]["type"]
                defined = symbol["st_shndx"] != "SHN_UNDEF" and kind == "STT_FUNC"
                if defined and not symbol.name.startswith("_"):
                    found.setdefault(symbol.name, library.name)
    return found


def declared() -> set[str]:
    root = install() / "include"
    return {name for h in headers() for name in DECLARED.findall((root / h).read_text())}


def independent() -> list[list[str]]:
    """Headers that cannot help each other: one alone, or all that declare functions only after
    the same directives, for no header needs a function that another declares."""
    groups: dict[Any, list[str]] = defaultdict(list)
    for header in headers():
        text = (install() / "include" / header).read_text()
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
        text = re.sub(r"^#ifndef (\w+)\n#define \1$", "", text, count=1, flags=re.MULTILINE)
        directives = tuple(re.findall(r"^[ \t]*#.*", text, re.MULTILINE))
        groups[header if DEFINES.search(text) else directives].append(header)
    return list(groups.values())


@pytest.mark.parametrize(
    "standard",
    [
        pytest.param("c11", marks=pytest.mark.slow),
        "c++11",
        pytest.param("c++20", marks=pytest.mark.slow),
    ],
)
def test_every_header_compiles_alone(standard: str) -> None:
    language = "c++" if "++" in standard else "c"
    sources = []
    for i, group in enumerate(independent()):
        source = scratch() / f"alone-{language}-{i}.{language}"
        includes = "".join(f"#include <{header}>\n" for header in group)
        source.write_text(f"{includes}extern int not_empty;\n")
        sources.append(str(source))
    flags = [f"-std={standard}", "-x", language, "-Wall", "-Wextra", "-Werror", "-pedantic"]
    # One compiler run per 100 translation units.
    for start in range(0, len(sources), 100):
        command = [compiler(language), *flags, "-fsyntax-only", f"-I{install() / 'include'}"]
        done = subprocess.run(
            command + sources[start : start + 100], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[:2000]


def test_layouts_and_values_are_those_of_the_catalog() -> None:
    facts = catalog()
    known = set(
        re.findall(r"\w+", "".join((install() / "include" / h).read_text() for h in headers()))
    )
    lines = [f"#include <{h}>" for h in headers() if h.startswith(("acl/", "aclnn/", "hccl/"))]
    checked = 0
    for name, (_, _, size, align, _) in facts["structs"].items():
        if name in known:
            lines.append(
                f'static_assert(sizeof({name}) == {size} && alignof({name}) == {align}, "");'
            )
            checked += 1
    for name, (home, values) in facts["enums"].items():
        if not home.startswith(("acl/", "aclnn/")):
            continue
        present = {k: v for k, v in values.items() if k in known}
        lines += [f'static_assert({k} == {v}, "{name}");' for k, v in present.items()]
        checked += len(present)
    for name, value in facts["constants"].items():
        if name in known and name.startswith(("ACL_ERROR_", "ACLNN_ERR_")):
            lines.append(f'static_assert({name} == {value}, "");')
            checked += 1
    source = scratch() / "layouts.cpp"
    source.write_text("\n".join(lines) + "\n")
    command = [compiler(), "-std=c++17", "-fsyntax-only", f"-I{install() / 'include'}", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
    assert checked > 700


def test_everything_declared_is_exported() -> None:
    assert declared() - set(exported()) == set()


def test_everything_exported_is_declared_or_known_to_have_no_header() -> None:
    extra = set(exported()) - declared()
    assert {name for name in extra if not UNDECLARED.fullmatch(name)} == set()


def test_both_phases_of_every_operator_are_exported_by_libopapi() -> None:
    found = exported()
    ops = {
        name.removesuffix("GetWorkspaceSize") for name in found if name.endswith("GetWorkspaceSize")
    }
    assert len(ops) >= 220
    assert {found[op] for op in ops} == {"libopapi.so"}


def test_libraries_need_each_other_as_in_cann() -> None:
    def needed(name: str) -> list[str]:
        with (install() / "lib64" / name).open("rb") as file:
            dynamic = ELFFile(file).get_section_by_name(".dynamic")
            return [tag.needed for tag in dynamic.iter_tags("DT_NEEDED")]

    assert "libnnopbase.so" in needed("libopapi.so")
    assert "libascendcl.so" in needed("libnnopbase.so")
    assert "libascendcl.so" in needed("libacl_op_compiler.so")


def test_what_torch_npu_links_to_exists() -> None:
    assert {"aclrtGetSocName", "aclopCompileAndExecute", "aclSetCompileopt", "MsprofReportApi",
            "rtKernelLaunch", "aclmdlInitDump", "aclrtMapMem", "aclGetTensorDescDimV2",
            "aclrtProcessReport"} <= set(exported())  # fmt: skip
    for library in ("hccl", "ge_runner", "graph", "acl_tdt_channel"):
        assert (install() / "lib64" / f"lib{library}.so").exists()
