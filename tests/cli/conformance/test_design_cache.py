"""Designs in the cache folder: found again, searched anew where they are damaged."""

import pytest
from mindtorch_npu.conformance.cases import declared, design_cache
from mindtorch_npu.conformance.operators import rows
from mindtorch_npu.conformance.operators.row import ROWS

NAME = "aclnnRmsNorm"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder of this test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    forget()
    yield tmp_path / "mindtorch-npu"
    forget()


def forget():
    declared._calls.cache_clear()
    design_cache._file.cache_clear()


def cases(dtypes=("float32",)):
    rows.declare(NAME)
    declared._calls.cache_clear()
    return [c.id for c in declared.design(NAME, ROWS[NAME].declaration, dtypes, "quick")]


def test_a_design_is_searched_once_and_found_again(cache, monkeypatch):
    searched = cases()
    assert len(searched) > 5
    monkeypatch.setattr(declared, "covering", None)  # a second search would fail
    assert cases() == searched
    assert len(list(cache.glob("designs-*.sqlite"))) == 1


def test_other_dtypes_have_a_design_of_their_own(cache):
    del cache
    assert cases() != cases(("float16", "float32"))


def test_a_damaged_file_is_searched_anew(cache):
    searched = cases()
    [file] = cache.glob("designs-*.sqlite")
    for damage in (b"", b"no database", file.read_bytes()[:300]):
        forget()
        file.write_bytes(damage)
        assert cases() == searched


def test_files_of_other_sources_are_removed(cache):
    cache.mkdir(parents=True)
    (cache / "designs-0.sqlite").write_bytes(b"")
    cases()
    assert not (cache / "designs-0.sqlite").exists()


def test_a_folder_that_cannot_be_written_does_no_harm(cache, monkeypatch):
    del cache
    searched = cases()
    forget()

    def refuse(_folder):
        raise OSError("read-only")

    monkeypatch.setattr(design_cache.user_dir, "to_write", refuse)
    assert cases() == searched
