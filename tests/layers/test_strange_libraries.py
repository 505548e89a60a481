"""What stands in a library's place is read or refused by name; nothing that others made is used."""

import os
import random
from pathlib import Path

import fake_cann
import pytest

import aclnn_bindings
from aclnn_bindings.layers import interposed


@pytest.fixture
def library(tmp_path: Path) -> Path:
    source = "extern int wanted(void); int use(void) { return wanted(); }"
    return fake_cann.compile_library(tmp_path / "libx.so", source)


def test_damaged_libraries_are_read_or_refused_by_name(library: Path) -> None:
    sound, rng, refused = library.read_bytes(), random.Random(0), 0
    for _ in range(600):
        body = bytearray(sound)
        width = rng.choice((1, 2, 4, 8))
        # The tables that the loader goes by come first, and few bytes of the rest matter.
        at = rng.randrange(16, len(body) - 8 if rng.random() < 0.5 else 0x400)
        body[at : at + width] = rng.choice((0, 1, 1 << (8 * width - 1), 256**width - 1)).to_bytes(
            width, "little"
        )
        library.write_bytes(body[: rng.randrange(1, len(body))] if rng.random() < 0.1 else body)
        try:
            interposed.exports(library)
        except interposed.LayersUnavailableError:
            refused += 1
    assert refused


@pytest.mark.parametrize("kind", ["empty", "pipe", "folder", "text"])
def test_what_is_no_library_is_refused_by_name(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "libx.so"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_text("GROUP ( libc.so.6 )" if kind == "text" else "")
    with pytest.raises(interposed.LayersUnavailableError, match=r"libx\.so"):
        interposed.exports(path)


def test_layers_behind_a_link_are_neither_used_nor_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever placed the link would choose the libraries that programs load."""
    monkeypatch.setenv("MINDTORCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(interposed, "temporary", lambda: tmp_path / "own")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache/layers").symlink_to(tmp_path / "theirs")
    made = interposed.interpose(aclnn_bindings.open(simulator=True).install)
    assert made.root.is_relative_to(tmp_path / "own/layers")
    assert list((tmp_path / "theirs").iterdir()) == []
