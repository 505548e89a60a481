"""Kernels name their parameters; the compiler refuses wrong names and names of another kind."""

import re
import subprocess
from pathlib import Path

import pytest
from compiled import compiler, install

import aclnn_bindings
from aclnn_bindings.simulator.generation import catalog as catalogs, params, rows

ROOT = Path(aclnn_bindings.__file__).parent
SOURCES = ROOT / "simulator" / "src"
CATALOG = catalogs.load(ROOT / "catalogs")
ACCESSORS = (
    "tensor|maybe|tensors|scalar|maybe_scalar|scalars|ints|bools|floats|integer|number|flag|text"
    "|null|name|resize"
)
RULE = re.compile(r"\b(\w+)\((?:const )?Call& c, (?:TensorAt|ScalarAt|At<[^>]*>) \w+")
USED = re.compile(r"using P = params::(\w+);")
NAMED = re.compile(r"\bP::(\w+)")


def compiled(folder: Path, expression: str) -> subprocess.CompletedProcess[str]:
    """The compiler's answer to a kernel of aclnnRmsNorm that evaluates `expression`."""
    (folder / "params").mkdir(exist_ok=True)
    (folder / "params" / "norm.h").write_text(params.names(CATALOG, ["aclnnRmsNorm"]))
    source = folder / "kernel.cpp"
    source.write_text(
        '#include "params/norm.h"\n#include "loops/versions.h"\nusing namespace aclsim;\n'
        f"using P = params::RmsNorm;\nvoid kernel(Call& c) {{ (void)({expression}); }}\n"
    )
    folders = [folder, SOURCES, ROOT / "native", install() / "include"]
    return subprocess.run(
        [compiler(), "-std=c++17", "-fsyntax-only", *(f"-I{f}" for f in folders), str(source)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "expression",
    [
        "c.tensor(P::gamma)",
        "c.number(P::epsilon)",
        "c.null(P::x)",
        "expect_same_shape(c, P::yOut, P::x)",
        "ACLSIM_AT(P, gamma)",
    ],
)
def test_names_of_the_right_kind_compile(tmp_path: Path, expression: str) -> None:
    answer = compiled(tmp_path, expression)
    assert answer.returncode == 0, answer.stderr


@pytest.mark.parametrize(
    ("expression", "refusal"),
    [
        ("c.tensor(P::beta)", "beta"),
        ("ACLSIM_AT(P, gama)", "gama"),
        ("c.tensor(P::epsilon)", "this parameter is of another kind"),
        ("c.number(P::gamma)", "this parameter is of another kind"),
        ("expect_same_shape(c, P::epsilon, P::x)", "this parameter is of another kind"),
    ],
)
def test_the_compiler_refuses_a_name_that_does_not_fit(
    tmp_path: Path, expression: str, refusal: str
) -> None:
    answer = compiled(tmp_path, expression)
    assert answer.returncode != 0
    assert refusal in answer.stderr


def kernel_files() -> list[Path]:
    patterns = ("ops/*/*.cpp", "loops/*.cpp", "loops/*.h")
    return sorted(path for pattern in patterns for path in SOURCES.glob(pattern))


def test_no_kernel_addresses_a_parameter_by_a_number() -> None:
    text = {path: path.read_text(encoding="utf-8") for path in kernel_files()}
    rules = {name for source in text.values() for name in RULE.findall(source)}
    literal = re.compile(
        rf"\bc\.(?:{ACCESSORS})\(\d|\bc\.args\[\d|\b(?:{'|'.join(sorted(rules))})\(c, \d"
    )
    assert {p.name: hits for p, source in text.items() if (hits := literal.findall(source))} == {}


def test_names_are_positions_of_each_operator_that_a_file_registers() -> None:
    """A kernel that several operators share names one of them: one that its file registers."""
    for path in SOURCES.glob("ops/*/*.cpp"):
        registered = {params.struct_name(op) for op in rows.find_ops([path], CATALOG)}
        named = set(USED.findall(path.read_text(encoding="utf-8")))
        assert named <= registered, path.name
