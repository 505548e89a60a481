"""Owns torch.hub's names: files of weights by URL; repositories of code are refused."""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlparse
from urllib.request import urlopen

_CHUNK = 1 << 20
HASH_REGEX = re.compile(r"-([a-f0-9]{6,})\.")
_state: dict[str, str] = {}


def _get_torch_home() -> str:
    cache = os.getenv("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """The folder of downloads: what set_dir was given, else $TORCH_HOME/hub (torch.hub)."""
    return _state.get("dir") or os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Keep downloads in folder `d`."""
    _state["dir"] = os.path.expanduser(d)


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Save `url` as file `dst`; RuntimeError where its SHA-256 has another prefix."""
    target = Path(dst).expanduser()
    digest = hashlib.sha256()
    with tempfile.NamedTemporaryFile(dir=target.parent, suffix=".partial", delete=False) as part:
        try:
            with urlopen(url) as source:
                while chunk := source.read(_CHUNK):
                    part.write(chunk)
                    digest.update(chunk)
            part.close()
            prefix = digest.hexdigest()[: len(hash_prefix or "")]
            if hash_prefix and prefix != hash_prefix:
                raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{prefix}")')
            os.replace(part.name, target)
        finally:
            Path(part.name).unlink(missing_ok=True)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> Any:
    """The tensors saved at `url`, downloaded once into `model_dir` (torch.hub's by default)."""
    from .serialization import load

    folder = Path(model_dir or os.path.join(get_dir(), "checkpoints"))
    folder.mkdir(parents=True, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = folder / name
    if not path.exists():
        match = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, str(path), match.group(1) if match else None, progress)
    return load(str(path), map_location=map_location)


def load(repo_or_dir: str, model: str, *args: Any, **kwargs: Any) -> Any:
    """Refused: a repository's code imports torch itself."""
    raise NotImplementedError(
        f"hub.load: running code of {repo_or_dir!r} is not supported; import its model and give"
        " its weights to load_state_dict"
    )


def __getattr__(name: str) -> Any:
    if name == "tqdm":
        try:
            tqdm: Any = importlib.import_module("tqdm").tqdm
        except ImportError:
            tqdm = _Quiet
        return tqdm
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Quiet:
    """What stands for tqdm's bar where tqdm is not installed: shows nothing."""

    def __init__(self, iterable: Any = (), **options: Any):
        self.iterable = iterable

    def __iter__(self) -> Any:
        return iter(self.iterable)

    def __enter__(self) -> _Quiet:
        return self

    def __exit__(self, *exc: object) -> None:
        return None

    def update(self, n: int = 1) -> None:
        """Nothing to show."""

    set_description = set_postfix = update

    def close(self) -> None:
        """Nothing to close."""
