"""Where a user's files go, also for users without a home and with one that is read-only."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from aclnn_bindings.interface import user_dir

CASES = (("XDG_CACHE_HOME", ".cache"), ("XDG_STATE_HOME", ".local/state"))


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The temporary folder; the user's is made anew in each test."""
    user_dir.temporary.cache_clear()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for name, _ in CASES:
        monkeypatch.delenv(name, raising=False)
    yield tmp_path
    user_dir.temporary.cache_clear()


@pytest.mark.parametrize(("variable", "default"), CASES)
def test_a_variable_or_the_home_says(
    variable: str, default: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/h")
    assert user_dir.of_user(variable, default) == Path("/h", default, "mindtorch-npu")
    monkeypatch.setenv(variable, "~/x")
    assert user_dir.of_user(variable, default) == Path("/h/x/mindtorch-npu")


@pytest.mark.parametrize(("variable", "default"), CASES)
def test_a_user_without_a_home_gets_a_folder_of_its_own(
    variable: str, default: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a container that runs under a number that no file of users knows, with no HOME."""
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    folder = user_dir.of_user(variable, default)
    assert folder.parent == place / f"mindtorch-npu-{os.getuid()}"
    assert folder.parent.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_cannot_be_made_is_replaced(place: Path) -> None:
    (place / "file").write_text("")
    assert user_dir.to_write(place / "file/state") == (
        place / f"mindtorch-npu-{os.getuid()}" / "state"
    )
    assert user_dir.to_write(place / "new/state") == place / "new/state"


@pytest.mark.parametrize("kind", ["link", "open"])
def test_a_folder_of_somebody_else_is_not_taken(kind: str, place: Path) -> None:
    """Who may write there could put files in the place of ours."""
    own = place / f"mindtorch-npu-{os.getuid()}"
    if kind == "link":
        (place / "theirs").mkdir(mode=0o700)
        own.symlink_to(place / "theirs")
    else:
        own.mkdir()
        own.chmod(0o777)
    fresh = user_dir.temporary()
    assert fresh != own
    assert fresh.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_chose_is_told(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "mine").mkdir()
    (place / "link").symlink_to(place / "mine")
    told = [user_dir.of_others(place / name) for name in ("mine", "link", "absent")]
    assert told == [False, True, False]
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert user_dir.of_others(place / "mine") == (os.getuid() != 0)


@pytest.mark.parametrize("above", [0, 1, 2])
def test_a_folder_that_others_may_change_is_not_written(above: int, place: Path) -> None:
    folder = place / "base/mindtorch-npu/cache"
    folder.mkdir(parents=True)
    assert user_dir.to_write(folder) == folder
    shared = [folder, *folder.parents][above]
    if above:
        shared.chmod(0o777)
    else:
        folder.rmdir()
        folder.symlink_to(place)
    assert user_dir.is_changed_by_others(folder)
    assert user_dir.to_write(folder) == place / f"mindtorch-npu-{os.getuid()}" / "cache"
