"""The key of a run: who shares it, and where the user's secret is."""

import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mindtorch.distributed import _run_key
from mindtorch.distributed._run_key import run_key

NAMES = ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MINDTORCH_RUN_TOKEN",
         "LOCAL_WORLD_SIZE")  # fmt: skip


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path / "state" / "mindtorch-npu"


def test_a_run_on_one_host_has_a_secret_that_the_user_alone_can_read(state: Path) -> None:
    key = run_key("127.0.0.1", 2)
    assert key == run_key("localhost", 2) == run_key("::1", 2)
    file = state / "run-key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.unlink()
    assert run_key("127.0.0.1", 2) != key


def test_a_launcher_that_starts_all_here_makes_it_a_run_of_one_host(
    monkeypatch: pytest.MonkeyPatch, state: Path
) -> None:
    open_key = run_key("host1", 2)
    assert not state.exists()
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")
    assert run_key("host1", 2) == open_key
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert run_key("host1", 2) not in (open_key, run_key("host1", 3))


def test_the_token_of_the_environment_takes_the_place_of_the_file(
    monkeypatch: pytest.MonkeyPatch, state: Path
) -> None:
    monkeypatch.setenv("MINDTORCH_RUN_TOKEN", "secret")
    key = run_key("127.0.0.1", 2)
    assert key == run_key("host1", 2)
    assert not state.exists()
    monkeypatch.setenv("MINDTORCH_RUN_TOKEN", "other")
    assert run_key("127.0.0.1", 2) != key


def test_processes_that_start_at_once_get_one_secret(state: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        keys = set(pool.map(run_key, ["127.0.0.1"] * 64, [2] * 64))
    assert len(keys) == 1
    assert os.listdir(state) == ["run-key"]


def open_to_others(state: Path) -> None:
    (state / "run-key").chmod(0o644)


def link(state: Path) -> None:
    (state / "run-key").rename(state / "elsewhere")
    (state / "run-key").symlink_to(state / "elsewhere")


def short(state: Path) -> None:
    (state / "run-key").write_bytes(b"")


def folder_of_all(state: Path) -> None:
    state.chmod(0o777)


@pytest.mark.parametrize("damage", [open_to_others, link, short, folder_of_all])
def test_a_file_that_others_may_know_or_write_is_not_used(
    damage: Callable[[Path], None], state: Path
) -> None:
    key = run_key("127.0.0.1", 2)
    damage(state)
    other = run_key("127.0.0.1", 2)
    assert other not in (key, run_key("host1", 2))
    assert other == run_key("127.0.0.1", 2)


def test_proofs_of_one_role_or_nonce_are_not_those_of_another() -> None:
    proofs = {
        _run_key.proof(key, role, *nonces)
        for key in (b"a", b"b")
        for role in ("caller", "rank 0")
        for nonces in (("1", "2"), ("2", "1"), ("12", ""))
    }
    assert len(proofs) == 12
