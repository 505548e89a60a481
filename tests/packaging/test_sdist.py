"""The source distribution holds what its documents name."""

import importlib
import re
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_NAMED = re.compile(r"[`(\s](\.?[\w-]+(?:/[\w.-]+)*\.?[\w-]*)")


def _named_files() -> set[str]:
    """Files of the tree that README, CONTRIBUTING, SECURITY or a page of docs/ names."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    words = {word for page in pages for word in _NAMED.findall(page.read_text("utf-8"))}
    return {word for word in words if "/" in word and (ROOT / word).is_file()}


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="an unpacked archive is not packed again")
def test_source_distribution_holds_the_files_that_documents_name(tmp_path: Path) -> None:
    pytest.importorskip("scikit_build_core", reason="the build's own packages are not installed")
    archive = importlib.import_module("mindtorch_build").build_sdist(str(tmp_path))
    with tarfile.open(tmp_path / archive) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    named = _named_files()
    assert ".ci/wheels" in named
    assert not sorted(named - names)
