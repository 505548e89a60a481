"""Owns torch.hub's names: files of weights by URL, and entry points of repositories with a hubconf.

A repository's code imports torch, so it runs where mindtorch stands in for it (`exec`).
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import json
import os
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlparse
from urllib.request import Request, urlopen

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
        sys.stdout.write(f'Downloading: "{url}" to {path}\n')
        match = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, str(path), match.group(1) if match else None, progress)
    return load(str(path), map_location=map_location, weights_only=weights_only)


def list(
    github: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: bool | str = "check",
    verbose: bool = True,
) -> Any:
    """The entry points of repository "owner/name[:ref]", sorted."""
    folder = _repository(github, force_reload, trust_repo, verbose, skip_validation)
    with _hubconf(folder) as module:
        names = dir(module)
    return [n for n in names if callable(getattr(module, n)) and not n.startswith("_")]


def help(
    github: str,
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: bool | str = "check",
) -> str | None:
    """The docstring of entry point `model` of repository "owner/name[:ref]"."""
    folder = _repository(github, force_reload, trust_repo, True, skip_validation)
    with _hubconf(folder) as module:
        return _entry(module, model).__doc__


def load(
    repo_or_dir: str,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: bool | str = "check",
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """Call entry point `model` of a repository "owner/name[:ref]" or of a local folder.

    ValueError for another `source`; RuntimeError where the hubconf has no such entry point or
    misses a dependency.
    """
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "github":
        repo_or_dir = _repository(repo_or_dir, force_reload, trust_repo, verbose, skip_validation)
    with _hubconf(repo_or_dir) as module:
        return _entry(module, model)(*args, **kwargs)


@contextlib.contextmanager
def _hubconf(folder: str) -> Iterator[ModuleType]:
    """The folder's hubconf.py as a module; the folder is first on sys.path meanwhile."""
    sys.path.insert(0, folder)
    try:
        path = os.path.join(folder, "hubconf.py")
        spec = importlib.util.spec_from_file_location("hubconf.py", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(folder)


def _entry(module: ModuleType, model: str) -> Any:
    """Function `model` of a hubconf."""
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    names = getattr(module, "dependencies", None) or ()
    if missing := [name for name in names if importlib.util.find_spec(name) is None]:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    function = getattr(module, model, None)
    if not callable(function):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return function


def _repository(
    github: str, force: bool, trust: bool | str, verbose: bool, skip_validation: bool
) -> str:
    """The folder of a repository, downloaded at its first use or when forced."""
    hub = get_dir()
    os.makedirs(hub, exist_ok=True)
    owner, name, ref = _parse_repo_info(github)
    branch = ref.replace("/", "_")
    folder = os.path.join(hub, f"{owner}_{name}_{branch}")
    _check_trust(hub, owner, name, os.path.basename(folder), trust)
    if not force and os.path.exists(folder):
        if verbose:
            sys.stderr.write(f"Using cache found in {folder}\n")
        return folder
    if not skip_validation:
        _check_fork(owner, name, ref)
    archive = os.path.join(hub, branch + ".zip")
    url = f"https://github.com/{owner}/{name}/zipball/{ref}"
    sys.stdout.write(f'Downloading: "{url}" to {archive}\n')
    download_url_to_file(url, archive, progress=False)
    with (
        tempfile.TemporaryDirectory(dir=hub) as unpacked,
        zipfile.ZipFile(archive) as opened,
    ):
        opened.extractall(unpacked)  # zipfile leaves out "..", drives and leading slashes
        shutil.rmtree(folder, ignore_errors=True)
        shutil.move(os.path.join(unpacked, os.listdir(unpacked)[0]), folder)
    os.remove(archive)
    return folder


def _parse_repo_info(github: str) -> tuple[str, str, str]:
    """Owner, name and ref of "owner/name[:ref]"; the default branch is main, else master."""
    repository, colon, ref = github.partition(":")
    owner, name = repository.split("/")
    if colon:
        return owner, name, ref
    try:
        with urlopen(f"https://github.com/{owner}/{name}/tree/main/"):
            return owner, name, "main"
    except HTTPError as error:
        if error.code == 404:
            return owner, name, "master"
        raise
    except URLError as error:
        for ref in ("main", "master"):
            if os.path.exists(f"{get_dir()}/{owner}_{name}_{ref}"):
                return owner, name, ref
        raise RuntimeError(
            "It looks like there is no internet connection and the repo could not be found in the"
            f" cache ({get_dir()})"
        ) from error


def _check_fork(owner: str, name: str, ref: str) -> None:
    """ValueError where no branch or tag of the repository itself is `ref`."""
    headers = {"Accept": "application/vnd.github.v3+json"}
    if token := os.environ.get("GITHUB_TOKEN"):
        headers["Authorization"] = f"token {token}"
    for kind in ("branches", "tags"):
        page = 1
        while True:
            url = f"https://api.github.com/repos/{owner}/{name}/{kind}?per_page=100&page={page}"
            with urlopen(Request(url, headers=headers)) as answer:
                entries = json.loads(answer.read())
            if any(e["name"] == ref or e["commit"]["sha"].startswith(ref) for e in entries):
                return
            if not entries:
                break
            page += 1
    raise ValueError(
        f"Cannot find {ref} in https://github.com/{owner}/{name}. If it's a commit from a forked"
        " repo, please call hub.load() with forked repo directly."
    )


def _check_trust(hub: str, owner: str, name: str, folder: str, trust: bool | str) -> None:
    """Ask before code of a repository that was not used before is run; note it as trusted."""
    file = Path(hub, "trusted_list")
    file.touch()
    repository = f"{owner}_{name}"
    trusted = (
        repository in file.read_text().split()
        or os.path.isdir(os.path.join(hub, folder))
        or owner in ("facebookresearch", "facebookincubator", "pytorch", "fairinternal")
    )
    if trust is False or (trust == "check" and not trusted):
        answer = input(
            f"The repository {repository} does not belong to the list of trusted repositories and"
            " as such cannot be downloaded. Do you trust this repository and wish to add it to the"
            " trusted list of repositories (y/N)?"
        ).lower()
        if answer in ("n", "no", ""):
            raise Exception("Untrusted repository.")
        if answer not in ("y", "yes"):
            raise ValueError(f"Unrecognized response {answer}.")
    if not trusted:
        with open(file, "a") as listed:
            listed.write(repository + "\n")


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
