"""Owns modules of settings (torch.utils._config_module): a name that is no setting is refused."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from contextlib import ContextDecorator
from types import FunctionType, ModuleType
from typing import Any

__all__ = ["ConfigModule", "install_config_module"]


SETTINGS: dict[str, dict[str, Any]] = {}  # of each module of settings


class ConfigModule(ModuleType):
    """A module whose settings are read, set and patched; AttributeError for other names."""

    _config: dict[str, Any]
    _names: frozenset[str]
    _aliases: dict[str, str]

    def _place(self, name: str, names: Collection[str]) -> str:
        name = self._aliases.get(name, name)
        if name not in names:
            home = self.__name__.replace("mindtorch", "torch", 1)
            raise AttributeError(f"{home}.{name} does not exist")
        return name

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._config[self._place(name, self._config)]

    def __setattr__(self, name: str, value: object) -> None:
        if name.startswith("__"):
            super().__setattr__(name, value)
        else:
            self._config[self._place(name, self._names)] = value

    def __delattr__(self, name: str) -> None:
        """Hide a setting until it is set again, as `unittest.mock.patch` does at its end."""
        del self._config[self._place(name, self._config)]

    def get_config_copy(self) -> dict[str, Any]:
        """The settings by name."""
        return dict(self._config)

    shallow_copy_dict = to_dict = get_config_copy

    def load_config(self, config: Mapping[str, Any]) -> None:
        """Set several at once."""
        for name, value in config.items():
            setattr(self, name, value)

    def patch(
        self, arg1: str | Mapping[str, object] | None = None, arg2: object = None, **kwargs: object
    ) -> ConfigPatch:
        """A context or decorator in which settings are others: a name and its value, or several."""
        if isinstance(arg1, str):
            kwargs = {arg1: arg2}
        elif arg1 is not None:
            kwargs = dict(arg1)
        return ConfigPatch(self, kwargs)


class ConfigPatch(ContextDecorator):
    """Inside, settings are others."""

    def __init__(self, config: ConfigModule, changes: Mapping[str, Any]):
        self._module, self._changes = config, changes

    def __enter__(self) -> None:
        self._before = {name: getattr(self._module, name) for name in self._changes}
        self._module.load_config(self._changes)

    def __exit__(self, *error: object) -> None:
        self._module.load_config(self._before)


def install_config_module(module: ModuleType | str, aliases: Mapping[str, str] = {}) -> None:
    """Make a module one of settings: those are its plain values; `aliases` are second names."""
    module = sys.modules[module] if isinstance(module, str) else module
    settings = {
        name: value for name, value in vars(module).items()
        if not name.startswith("__") and not isinstance(value, ModuleType | FunctionType | type)
        and name != "annotations"
    }  # fmt: skip
    for name in [n for n in vars(module) if not n.startswith("__")]:
        delattr(module, name)
    SETTINGS[module.__name__] = settings
    vars(module).update(_config=settings, _names=frozenset(settings), _aliases=dict(aliases))
    module.__class__ = ConfigModule
