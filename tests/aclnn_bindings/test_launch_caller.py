"""The universal caller: any mix of integers, floats and doubles reaches any C function in place."""

import ctypes
import random
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from aclnn_bindings.errors import UnsupportedSignatureError
from aclnn_bindings.runtime.words import call

ROOT = Path(__file__).resolve().parents[2]
_TYPES = {
    "i": ("int32_t", 4),
    "l": ("int64_t", 8),
    "b": ("int8_t", 1),
    "B": ("bool", 1),
    "U": ("uint64_t", 8),
    "f": ("float", 4),
    "d": ("double", 8),
    "p": ("void *", 8),
}


def _mixes() -> list[str]:
    rng = random.Random(7)
    fixed = ["", "i", "d", "f", "id", "l" * 6, "l" * 7, "d" * 8, "d" * 9, "f" * 12, "l" * 50]
    fixed += ["fd" * 12, "lfd" * 10, "p" * 46 + "ddff", "B" * 10 + "f" * 10, "l" * 70, "d" * 72]
    return fixed + ["".join(rng.choices("ilbBUfdp", k=rng.randint(1, 60))) for _ in range(40)]


def _source(mixes: list[str]) -> str:
    """A function per mix that copies its arguments, 8 bytes each, to `seen`."""
    lines = ["#include <stdbool.h>", "#include <stdint.h>", "#include <string.h>"]
    lines.append("unsigned char seen[80][8];")
    for at, mix in enumerate(mixes):
        params = ", ".join(f"{_TYPES[c][0]} a{k}" for k, c in enumerate(mix)) or "void"
        body = "".join(f"memcpy(seen[{k}], &a{k}, sizeof a{k});" for k in range(len(mix)))
        lines.append(
            f"int f{at}({params}) {{ memset(seen, 0, sizeof seen); {body} return -{at}; }}"
        )
    return "\n".join(lines)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("caller")
    (folder / "mixes.c").write_text(_source(_mixes()))
    compiler = shutil.which("gcc") or shutil.which("cc")
    assert compiler, "the tests of the bindings need a C compiler"
    target = folder / "mixes.so"
    subprocess.run(
        [compiler, "-O2", "-shared", "-fPIC", str(folder / "mixes.c"), "-o", str(target)],
        check=True,
    )
    return ctypes.CDLL(str(Path(target)))


def _argument(rng: random.Random, code: str) -> tuple[tuple[bool, int], bytes]:
    """((is_float, bits), the bytes that must arrive)."""
    if code in "fd":
        data = struct.pack("<" + code, rng.uniform(-1e6, 1e6))
        return (True, int.from_bytes(data, "little")), data
    size = _TYPES[code][1]
    if code == "B":
        return (False, flag := rng.randint(0, 1)), bytes([flag])
    signed = code in "ilb"
    bound = 1 << (size * 8 - 1)
    value = rng.randrange(-bound, bound) if signed else rng.randrange(2 * bound)
    return (False, value & (1 << 64) - 1), value.to_bytes(size, "little", signed=signed)


@pytest.mark.parametrize(("at", "mix"), list(enumerate(_mixes())))
def test_every_argument_of_a_mix_arrives_in_its_place(
    library: ctypes.CDLL, at: int, mix: str
) -> None:
    rng = random.Random(at)
    made = [_argument(rng, code) for code in mix]
    address = ctypes.cast(getattr(library, f"f{at}"), ctypes.c_void_p).value
    assert address is not None
    result = call(address, [word for word, _ in made])
    assert result & 0xFFFFFFFF == -at & 0xFFFFFFFF
    seen = (ctypes.c_char * 640).in_dll(library, "seen").raw
    for k, (_, data) in enumerate(made):
        assert seen[8 * k : 8 * k + len(data)] == data, f"argument {k} of {mix}"


def test_more_arguments_than_the_stack_part_holds_are_refused(library: ctypes.CDLL) -> None:
    address = ctypes.cast(library.f0, ctypes.c_void_p).value
    assert address is not None
    with pytest.raises(UnsupportedSignatureError, match="80 arguments"):
        call(address, [(False, 0)] * 80)


_CHECK = """
#include "caller.h"
#include <cstdio>
extern "C" unsigned char seen[80][8];
struct Argument { bool is_float; uint64_t bits; int size; unsigned char bytes[8]; };
static int check(int at, void *function, const Argument *given, int count) {
  launch::Frame frame{};
  launch::Layout layout;
  for (int k = 0; k < count; ++k)
    frame.words[layout.place(given[k].is_float)] = given[k].bits;
  int wrong = int(launch::tier_for<uint64_t>(layout)(function, frame.words)) != -at;
  for (int k = 0; k < count; ++k) wrong |= memcmp(seen[k], given[k].bytes, given[k].size) != 0;
  if (wrong) printf("mix %d is misplaced\\n", at);
  return wrong;
}
"""


def _program(mixes: list[str]) -> str:
    """A C++ program that calls every mix through caller.h and checks what arrived."""
    declared = "".join(f'extern "C" int f{at}();\n' for at in range(len(mixes)))
    lines = []
    for at, mix in enumerate(mixes):
        rng = random.Random(at)
        rows = [
            f"{{{int(word[0])}, {word[1]}ull, {len(data)}, {{{', '.join(map(str, data))}}}}}"
            for word, data in (_argument(rng, code) for code in mix)
        ]
        given = ", ".join(rows) or "{0, 0, 0, {0}}"
        lines.append(
            f"  {{ static const Argument given[] = {{{given}}};"
            f" wrong |= check({at}, (void *)f{at}, given, {len(mix)}); }}\n"
        )
    return (
        f"{_CHECK}{declared}int main() {{\n  int wrong = 0;\n{''.join(lines)}  return wrong;\n}}\n"
    )


@pytest.mark.parametrize(("prefix", "runner"), [("", ""), ("aarch64-linux-gnu-", "qemu-aarch64")])
def test_the_caller_places_every_mix_on_each_architecture(
    prefix: str, runner: str, tmp_path: Path
) -> None:
    tools = [f"{prefix}gcc", f"{prefix}g++", *([runner] if runner else [])]
    if missing := [tool for tool in tools if shutil.which(tool) is None]:
        pytest.skip(f"to run code of another architecture, install {', '.join(missing)}")
    sources = ROOT / "aclnn_bindings/runtime/launch"
    if not sources.is_dir():
        pytest.skip("only a source tree has caller.h")
    (tmp_path / "mixes.c").write_text(_source(_mixes()))
    (tmp_path / "main.cpp").write_text(_program(_mixes()))
    here = [f"-I{sources}", "-O2"]
    build = {"gcc": ["-c", "mixes.c", "-o", "mixes.o"], "g++": ["main.cpp", "mixes.o", "-o", "run"]}
    for tool, arguments in build.items():
        subprocess.run([prefix + tool, *here, *arguments], cwd=tmp_path, check=True)
    emulate = [runner, "-L", "/usr/aarch64-linux-gnu"] if runner else []
    done = subprocess.run([*emulate, "./run"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
