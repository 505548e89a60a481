"""Owns torch.version's names."""

__version__ = "0.1.0"
debug = False
cuda: str | None = None
hip: str | None = None
git_version = ""
