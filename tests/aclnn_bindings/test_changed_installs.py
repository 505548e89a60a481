"""Installs that change while somebody looks at them, or has them open."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import fake_cann
import pytest

from aclnn_bindings.diagnose.causes import causes
from aclnn_bindings.diagnose.probe import Request, probe
from aclnn_bindings.errors import RuntimeStateError
from aclnn_bindings.install.describe import describe
from aclnn_bindings.runtime.symbols import SymbolLookup


def reinstalled(root: Path) -> None:
    """Another release is copied over this one."""
    shutil.rmtree(root)
    fake_cann.copy(fake_cann.whole(), root)
    fake_cann.write_version(root, "9.0.0")
    for path in root.glob("lib64/*"):
        os.utime(path, (4e9, 4e9))


def switched(root: Path) -> None:
    """`latest` leads elsewhere."""
    other = fake_cann.copy(root, root.parent / "9.0.0")
    link = root.parent / "latest"
    link.unlink()
    link.symlink_to(other)


@pytest.mark.parametrize("change", [reinstalled, switched, shutil.rmtree])
def test_a_library_of_another_release_is_not_called_by_the_headers_of_the_first(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    root = fake_cann.copy(fake_cann.whole(), tmp_path / "8.1.RC1")
    (tmp_path / "latest").symlink_to(root)
    install = describe(tmp_path / "latest", "test", {})
    assert install is not None
    symbols = SymbolLookup(install)
    change(root)
    with pytest.raises(RuntimeStateError, match=r"the file changed since.*start the process again"):
        symbols.address("aclInit")


@contextmanager
def happening(at: int, root: Path, change: Callable[[Path], None]) -> Iterator[list[int]]:
    """`change` is made of `root` before the question number `at` about a file of it."""
    asked, real = [0], os.stat

    def stat(path: object, **more: object) -> os.stat_result:
        if isinstance(path, (str, os.PathLike)) and str(path).startswith(str(root)):
            asked[0] += 1
            if asked[0] == at:
                with pytest.MonkeyPatch.context() as undone:
                    undone.setattr(os, "stat", real)
                    change(root)
        return real(path, **more)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "stat", stat)
        yield asked


def gutted(root: Path) -> None:
    """The headers are cut in half, as in the middle of a copy."""
    for path in root.rglob("*.h"):
        os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize("change", [shutil.rmtree, reinstalled, gutted])
def test_an_install_that_changes_under_probe_is_no_defect_of_it(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    def asked_until(at: int) -> int:
        root = fake_cann.copy(fake_cann.whole(), tmp_path / str(at))
        environ = fake_cann.environment(root)
        with happening(at, root, change) as asked:
            report = probe(Request(root, run=False, bases=()), environ)
            causes(report, environ)
        assert report.install is not None or report.refusal
        return asked[0]

    total = asked_until(0)
    assert total > 50
    for at in range(1, total, total // 12):
        asked_until(at)
