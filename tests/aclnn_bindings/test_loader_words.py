"""What the loader says, word for word, and what probe makes of it.

The words are those of glibc 2.36 (tried here, but for the executable stack, which 2.41 refuses).
"""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from aclnn_bindings.diagnose.loader_words import complaint
from aclnn_bindings.install.describe import Install
from aclnn_bindings.install.versions import Versions

INSTALL = Install(Path("/cann"), "test", "cann", Versions(), (), ())
X = "/cann/lib64/libx.so"
SAID = (
    (f"{X}: cannot open shared object file: Permission denied", "may not read", "HwHiAiUser"),
    (f"{X}: cannot open shared object file: Too many open files", "cannot be opened: Too many", "ulimit -n"),
    (f"{X}: cannot open shared object file: Stale file handle", "Stale file handle", "mount"),
    (f"{X}: cannot open shared object file: Input/output error", "Input/output error", "dmesg"),
    (f"{X}: cannot open shared object file: No such file or directory", "libx.so not found", "install"),
    (f"{X}: failed to map segment from shared object: Cannot allocate memory", "no memory for", "ulimit -v"),
    (f"{X}: failed to map segment from shared object: Permission denied", "by a policy such as SELinux", "ausearch"),
    (f"{X}: failed to map segment from shared object", "by a policy such as SELinux", "ulimit -v"),
    (f"{X}: cannot enable executable stack as shared object requires: Permission denied", "executable stack", "patchelf"),
    (f"{X}: cannot allocate memory in static TLS block", "no room is left", "LD_PRELOAD"),
    (f"{sys.prefix}/lib/libstdc++.so.6: version `GLIBCXX_3.4.29' not found (required by {X})", "came with this Python, is older than GLIBCXX_3.4.29", "conda install"),
    (f"/usr/lib/libstdc++.so.6: version `GLIBCXX_3.4.29' not found (required by {X})", "this system's C or C++ library is older", "newer system"),
    (f"{X}: undefined symbol: _Z3foov", "symbol _Z3foov is in no loaded library", "two CANN versions"),
    (f"{X}: undefined symbol: aclrtMalloc, version V2", "symbol aclrtMalloc of version V2 is in no", "two CANN versions"),
    ("libc.musl-x86_64.so.1: cannot open shared object file: No such file or directory", "built for musl", "glibc"),
    ("ld-musl-aarch64.so.1: cannot open shared object file: No such file or directory", "built for musl", "glibc"),
    (f"Error loading shared library {X}: No such file or directory (needed by /y.so)", "by musl, this system's C library", "openEuler"),
    (f"Error relocating {X}: __memcpy_chk: symbol not found", "by musl", "openEuler"),
    ("a child process could not be started: [Errno 24] Too many open files", "may open no more files", "ulimit -n"),
    ("anything else", "a library cannot be loaded", "loader's words"),
)  # fmt: skip


@pytest.mark.parametrize(("words", "what", "fix"), SAID)
def test_the_loaders_words_have_a_cause_and_a_fix(words: str, what: str, fix: str) -> None:
    cause = complaint(words, INSTALL)
    assert (what in cause[0], fix in cause[1]) == (True, True), cause


def test_a_file_system_without_exec_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_flag=os.ST_NOEXEC))
    what, fix = complaint(f"{X}: failed to map segment from shared object", INSTALL)
    assert "mounted noexec" in what
    assert f"findmnt -T {X}" in fix
