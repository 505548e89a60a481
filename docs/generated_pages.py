"""Adds the generated reference pages to the site; mkdocs runs this file as a hook."""

import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))

import pages


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Called by mkdocs when it has listed the files of docs/."""
    for name, make in pages.REFERENCE.items():
        files.append(File.generated(config, name, content=make()))
    return files
