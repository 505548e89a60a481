"""Owns the moment when rows and their surfaces are loaded: first use, so that imports stay quick.

`import mindtorch` brings names that need no op. The first other name, of the module or of
`Tensor`, loads everything here; no tensor exists before that.
"""

from __future__ import annotations

import importlib

from .locks import Lock

# Modules that publish hand-written functions and methods; rows are published after them.
SURFACES = (
    "_dispatch.overloads",
    "_autograd.surface",
    *("_functional." + name for name in (
        "creation", "likes", "conversion", "indexing", "printing", "pickling", "sharing", "queries",
        "dlpack",
    )),
    "_random.draws",
    "_random.rejection",
    "_functional.fake_quantize",
    "_functional.settings",
    "_compat.aliases",
    "_functional.lists",
    "_compat.legacy",
    "_functional.layouts",
    "_dispatch.wrapper_subclass",
)  # fmt: skip
_PACKAGE = __package__.rpartition(".")[0]

_lock = Lock()
_state = {"begun": False, "done": False}


def load() -> bool:
    """Load rows and surfaces, once; whether this call did."""
    if _state["done"]:
        return False
    with _lock:
        if _state["begun"]:
            return False
        _state["begun"] = True
        for name in SURFACES:
            importlib.import_module(f"{_PACKAGE}.{name}")
        functional = importlib.import_module(f"{_PACKAGE}._functional.publish")
        functional.publish_all()
        _state["done"] = True
        return True
