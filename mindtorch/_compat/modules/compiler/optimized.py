"""Owns the class of modules that torch.compile gives: the module inside, under one more name."""

from __future__ import annotations

from typing import Any

from mindtorch.nn.modules.module import Module


class OptimizedModule(Module):
    """A compiled module: keys of its state begin with `_orig_mod.`; all else is the module's."""

    __module__ = "mindtorch._dynamo.eval_frame"

    _orig_mod: Module
    _OWN = frozenset(("_orig_mod", "forward"))

    def __init__(self, mod: Module, call: Any = None) -> None:
        super().__init__()
        self.__dict__["_call"] = call or mod
        self.__dict__.pop("training", None)
        Module.__setattr__(self, "_orig_mod", mod)
        self.__dict__["__wrapped__"] = mod

    def forward(self, *args: object, **kwargs: object) -> object:
        """Call the module."""
        return self.__dict__["_call"](*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        inner = self.__dict__["_modules"]["_orig_mod"]
        return inner if name == "_orig_mod" else getattr(inner, name)

    def __setattr__(self, name: str, value: object) -> None:
        modules = self.__dict__.get("_modules", {})
        if "_orig_mod" not in modules or name in self._OWN or name in self.__dict__:
            super().__setattr__(name, value)
        else:
            setattr(modules["_orig_mod"], name, value)

    def __delattr__(self, name: str) -> None:
        if name in self.__dict__:
            super().__delattr__(name)
        else:
            delattr(self._orig_mod, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __len__(self) -> int:
        inner: Any = self._orig_mod
        return len(inner)
