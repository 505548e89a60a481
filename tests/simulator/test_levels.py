"""What `ops/levels.cmake` leaves less optimised is no loop that somebody waits for."""

import re
from pathlib import Path

import aclnn_bindings

ROOT = Path(aclnn_bindings.__file__).parent
KERNELS = ROOT / "simulator" / "src" / "ops"

WORDS = re.compile(r"^set\((plain|middle)\n([^)]*)\)", re.M)
USED = (ROOT.parent / "mindtorch/_backends/cpu/kernels/operators.txt").read_text().split()


def _levels() -> dict[str, re.Pattern[str]]:
    found = WORDS.findall((KERNELS / "levels.cmake").read_text())
    return {level: re.compile("|".join(words.split())) for level, words in found}


def _level(name: str) -> str:
    return next((level for level, words in _levels().items() if words.match(name)), "fast")


def _sources() -> dict[str, str]:
    return {str(p.relative_to(KERNELS)): p.read_text() for p in KERNELS.rglob("*.cpp")}


def test_kernels_of_mindtorch_are_compiled_for_speed():
    used = {name for name in USED if name.startswith("aclnn")}
    plain = {name: text for name, text in _sources().items() if _level(name) == "plain"}
    assert len(plain) > 30
    wrong = {
        name: used.intersection(re.findall(r"\baclnn\w+", text)) for name, text in plain.items()
    }
    assert not {name: operators for name, operators in wrong.items() if operators}


def test_loops_for_wider_machines_are_compiled_for_speed():
    cloned = {name for name, text in _sources().items() if "ACL_VECTOR" in text}
    assert {_level(name) for name in cloned} == {"fast"}, cloned
