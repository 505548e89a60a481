"""Owns torch.version's names."""

from . import __version__ as __version__

debug = False
cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
git_version = ""
