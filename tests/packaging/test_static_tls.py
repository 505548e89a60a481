"""Native parts fit into processes that have loaded much before them."""

from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

import aclnn_bindings

LIBRARIES = sorted(
    {
        path.resolve()
        for package in aclnn_bindings.__path__  # an editable install has two
        for place in ("runtime", "simulator/cann/lib64", "layers")
        for path in (Path(package) / place).glob("*.so")
    }
)
# glibc 2.28 keeps 1,664 bytes of static thread-local storage for all libraries that come after the
# start (elf/dl-tls.c, TLS_STATIC_SURPLUS); on AArch64 others often take most of them.
MOST = 320
# What marks a library whose thread-local data must lie there (DT_FLAGS, ELF specification).
DF_STATIC_TLS = 0x10


@pytest.mark.parametrize("path", LIBRARIES, ids=lambda path: path.name)
def test_a_library_takes_little_static_thread_local_storage(path: Path) -> None:
    with path.open("rb") as file:
        elf = ELFFile(file)
        size = sum(s["p_memsz"] for s in elf.iter_segments() if s["p_type"] == "PT_TLS")
        tags = elf.get_section_by_name(".dynamic").iter_tags()
        flags = sum(tag["d_val"] for tag in tags if tag.entry.d_tag == "DT_FLAGS")
    assert not flags & DF_STATIC_TLS or size <= MOST


def test_there_are_native_parts() -> None:
    names = {path.name for path in LIBRARIES}
    assert {"libascendcl.so", "libnnopbase.so", "libopapi.so"} <= names
    assert any(name.startswith("_launch") for name in names)
