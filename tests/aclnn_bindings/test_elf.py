"""Reading library files, sound ones and every kind of broken one, without loading them."""

import struct
from pathlib import Path

import fake_cann
import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

import aclnn_bindings
from aclnn_bindings.install import elf
from aclnn_bindings.install.describe import arch
from aclnn_bindings.install.search import bundled_simulator

SOURCE = """
int visible(void) { return 1; }
__attribute__((weak)) int weak(void) { return 1; }
__attribute__((visibility("hidden"))) int hidden(void) { return 1; }
static int local(void) { return 1; }
extern int wanted(void);
int use(void) { return wanted() + local(); }
int table = 3;
"""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    return fake_cann.compile_library(tmp_path / "libx.so", SOURCE)


def test_exports_are_what_the_linker_would_find(library: Path) -> None:
    found = elf.read(library)
    assert {"visible", "weak", "use", "table"} <= found.exports
    assert found.exports.isdisjoint({"hidden", "local", "wanted"})
    assert found.problem == ""


def test_soname_machine_and_needs_are_read(library: Path, tmp_path: Path) -> None:
    above = elf.read(fake_cann.compile_library(tmp_path / "liby.so", "int y;", (library,)))
    assert above.soname == "liby.so"
    assert above.machine == arch()
    assert "libx.so" in above.needed


def test_needed_versions_of_the_c_library_are_read(tmp_path: Path) -> None:
    source = "#include <stdlib.h>\nvoid *get(int n) { return malloc(n); }"
    found = elf.read(fake_cann.compile_library(tmp_path / "libz.so", source))
    assert any(version.startswith("GLIBC_") for version in found.versions)


@pytest.mark.parametrize("part", [0.3, 0.5, 0.9])
def test_a_file_cut_off_says_where_it_ends(library: Path, part: float) -> None:
    whole = library.read_bytes()
    library.write_bytes(whole[: int(len(whole) * part)])
    found = elf.read(library)
    assert "is truncated" in found.problem
    assert found.machine == arch()
    assert found.fatal or "visible" in found.exports


def test_a_file_that_lost_only_its_section_table_is_read_as_the_loader_does(
    library: Path, tmp_path: Path
) -> None:
    above = fake_cann.compile_library(tmp_path / "liby.so", SOURCE, (library,))
    whole = elf.read(above)
    above.write_bytes(above.read_bytes()[:-100])
    cut = elf.read(above)
    assert "what the loader reads is still there" in cut.problem
    assert not cut.fatal
    assert cut.exports == whole.exports
    assert (cut.needed, cut.soname) == (whole.needed, whole.soname)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is an empty file"),
        (b"hello, world", "is not an ELF file (it starts with 'hello, world')"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git-lfs pointer"),
        (b"/* GNU ld script */\nGROUP ( libc.so.6 )\n", "linker script"),
        (b"\x7fELF", "is damaged"),
        (b"\x7fELF" + bytes(range(60)), "is damaged"),
    ],
)
def test_what_is_no_library_is_called_what_it_is(
    tmp_path: Path, content: bytes, words: str
) -> None:
    path = tmp_path / "libbad.so"
    path.write_bytes(content)
    assert words in elf.read(path).problem
    assert elf.read(path).fatal


def test_damage_anywhere_in_the_file_is_survived(library: Path) -> None:
    whole = library.read_bytes()
    for at in range(0, len(whole), 97):
        if 2048 < at < len(whole) - 4096 and at % 4:  # mostly code
            continue
        broken = bytearray(whole)
        broken[at : at + 8] = b"\xff" * len(broken[at : at + 8])
        library.write_bytes(broken)
        assert isinstance(elf.read(library).problem, str)


def test_another_machine_is_named(library: Path) -> None:
    data = bytearray(library.read_bytes())
    data[18:20] = (183 if arch() != "aarch64" else 62).to_bytes(2, "little")
    library.write_bytes(data)
    found = elf.read(library)
    assert found.machine in {"aarch64", "x86_64"} - {arch()}
    assert "visible" in found.exports


def test_a_link_to_nothing_and_a_missing_file_are_problems(tmp_path: Path) -> None:
    (tmp_path / "liblink.so").symlink_to(tmp_path / "gone")
    assert elf.read(tmp_path / "liblink.so").problem == f"is a broken link to {tmp_path}/gone"
    assert "No such file" in elf.read(tmp_path / "never").problem


# What the loader reserves of a program's static thread storage for a library that is loaded late.
STORAGE = {"layers/libaclnn_layers.so": 144, "simulator/cann/lib64/libascendcl.so": 80,
           "simulator/cann/lib64/libhccl.so": 8, "runtime/_launch.abi3.so": 32}  # fmt: skip


@pytest.mark.parametrize(("name", "most"), STORAGE.items())
def test_libraries_take_little_thread_storage(name: str, most: int) -> None:
    path = Path(aclnn_bindings.__file__).parent / name
    if not path.exists():
        pytest.skip("the native parts are not built")
    data = path.read_bytes()
    start, size, count = (struct.unpack_from(form, data, at)[0]
                          for form, at in (("<Q", 32), ("<H", 54), ("<H", 56)))  # fmt: skip
    programs = [struct.unpack_from("<IIQQQQQQ", data, start + i * size) for i in range(count)]
    assert sum(p[6] for p in programs if p[0] == 7) <= most  # PT_TLS, its size in memory


@pytest.mark.parametrize("field", ["entries", "count"])
def test_versions_that_lead_back_to_themselves_are_damage(field: str, tmp_path: Path) -> None:
    """Each entry says where the next one is: at itself, millions of times."""
    root = bundled_simulator()
    if root is None:
        pytest.skip("the simulator is not built")
    library = tmp_path / "lib.so"
    data = bytearray((root / "lib64/libascend_hal.so").read_bytes())
    with (root / "lib64/libascend_hal.so").open("rb") as file:
        parsed = ELFFile(file)
        number, section = next((i, s) for i, s in enumerate(parsed.iter_sections())
                               if isinstance(s, GNUVerNeedSection))  # fmt: skip
        head = parsed["e_shoff"] + number * parsed["e_shentsize"]
    at = section["sh_offset"]
    if field == "entries":  # sh_info; vn_next
        data[head + 44 : head + 48] = struct.pack("<I", 0xFFFFFFFF)
        data[at + 12 : at + 16] = bytes(4)
    else:  # vn_cnt of many entries that are the same
        data[head + 44 : head + 48] = struct.pack("<I", 30)
        data[at + 2 : at + 4] = struct.pack("<H", 0xFFFF)
        data[at + 12 : at + 16] = bytes(4)
        aux = at + struct.unpack_from("<I", data, at + 8)[0]
        data[aux + 12 : aux + 16] = bytes(4)
    library.write_bytes(data)
    assert "damaged" in elf.read(library).problem
