"""Owns saving a module tree to a state dict and loading it back; refuses files (serialization)."""

from __future__ import annotations

import itertools
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping
from operator import methodcaller
from typing import Any, NamedTuple, TypeVar

import mindtorch
from mindtorch.utils.hooks import RemovableHandle

from ..._tensor.tensor import Tensor
from ..parameter import Parameter, is_lazy
from ._conversion import ON_CONVERSION
from ._hooks import add_hook

EXTRA = "_extra_state"


class IncompatibleKeys(NamedTuple):
    missing_keys: list[str]
    unexpected_keys: list[str]


class _IncompatibleKeys(IncompatibleKeys):
    __module__ = "mindtorch.nn.modules.module"
    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class _Loading:
    """What one load_state_dict gathers while it walks the tree."""

    def __init__(self, state_dict: Mapping[str, Any], strict: bool, assign: bool) -> None:
        self.state: OrderedDict[str, Any] = OrderedDict(state_dict)
        self.metadata: Any = getattr(state_dict, "_metadata", None)
        if self.metadata is not None:
            self.state.__dict__["_metadata"] = self.metadata
        self.strict = strict
        self.assign = assign
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.errors: list[str] = []

    def into(self, module: StateDict, prefix: str, state: dict[str, Any]) -> None:
        metadata = {} if self.metadata is None else self.metadata.get(prefix[:-1], {})
        if self.assign:
            metadata["assign_to_params_buffers"] = True
        module._load_from_state_dict(
            state, prefix, metadata, True, self.missing, self.unexpected, self.errors
        )
        for name, child in module._modules.items():
            if child is not None:
                below = f"{prefix}{name}."
                part = {key: value for key, value in state.items() if key.startswith(below)}
                self.into(child, below, part)
        self._run_post_hooks(module)

    def _run_post_hooks(self, module: StateDict) -> None:
        keys = _IncompatibleKeys(self.missing, self.unexpected)
        for hook in module._load_state_dict_post_hooks.values():
            if hook(module, keys) is not None:
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not "
                    "expected to return new values, if incompatible_keys need to be modified, "
                    "it should be done inplace."
                )

    def finish(self, module: StateDict) -> _IncompatibleKeys:
        errors = list(self.errors)
        if self.strict:
            for what, keys in (("Unexpected", self.unexpected), ("Missing", self.missing)):
                if keys:
                    listed = ", ".join(f'"{key}"' for key in keys)
                    errors.insert(0, f"{what} key(s) in state_dict: {listed}. ")
        if errors:
            message = "\n\t".join(errors)
            name = type(module).__name__
            raise RuntimeError(f"Error(s) in loading state_dict for {name}:\n\t{message}")
        return _IncompatibleKeys(self.missing, self.unexpected)


class StateDict:
    """The part of Module that makes and loads state dicts."""

    _version: int = 1
    T_destination = TypeVar("T_destination", bound=dict[str, Any])
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _state_dict_hooks: OrderedDict[int, Any]
    _state_dict_pre_hooks: OrderedDict[int, Any]
    _load_state_dict_pre_hooks: OrderedDict[int, Any]
    _load_state_dict_post_hooks: OrderedDict[int, Any]

    def get_extra_state(self) -> Any:
        """Gives what the module saves beside its tensors; a
        module with extra state overrides it."""
        raise RuntimeError(_UNREACHABLE.format("get_extra_state"))

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Takes what get_extra_state gave; a module with extra state overrides it."""
        raise RuntimeError(_UNREACHABLE.format("set_extra_state"))

    def state_dict(
        self,
        *args: Any,
        destination: dict[str, Any] | None = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> dict[str, Any]:
        """Gives an OrderedDict from dotted names to detached parameters and persistent buffers."""
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead. Refer to"
                " https://pytorch.org/docs/main/generated/torch.nn.Module.html"
                "#torch.nn.Module.state_dict for details.",
                FutureWarning,
                stacklevel=2,
            )
            by_position = dict(zip(("destination", "prefix", "keep_vars"), args, strict=False))
            destination = by_position["destination"] if destination is None else destination
            prefix = by_position.get("prefix", "") if prefix == "" else prefix
            keep_vars = by_position.get("keep_vars", False) if keep_vars is False else keep_vars
        if destination is None:
            state: Any = OrderedDict()
            state._metadata = OrderedDict()
            destination = state
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        if not isinstance(prefix, str):
            raise TypeError(
                f"unsupported operand type(s) for +: '{type(prefix).__name__}' and 'str'"
            )
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, child in self._modules.items():
            if child is not None:
                child.state_dict(
                    destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
                )
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, metadata)
            if not getattr(hook, "_from_public_api", False):
                destination = destination if result is None else result
            elif result is not None:
                raise RuntimeError("state_dict post-hook must return None")
        return destination

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        persistent = (
            (name, buffer)
            for name, buffer in self._buffers.items()
            if name not in self._non_persistent_buffers_set
        )
        for name, tensor in itertools.chain(self._parameters.items(), persistent):
            if tensor is not None:
                destination[prefix + name] = tensor if keep_vars else tensor.detach()
        if type(self).get_extra_state is not StateDict.get_extra_state:
            destination[prefix + EXTRA] = self.get_extra_state()

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copies (or with `assign` adopts) the tensors; RuntimeError lists every mismatch."""
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        loading = _Loading(state_dict, strict, assign)
        loading.into(self, "", loading.state)
        return loading.finish(self)

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        for hook in self._load_state_dict_pre_hooks.values():
            problems = (missing_keys, unexpected_keys, error_msgs)
            hook(state_dict, prefix, local_metadata, strict, *problems)
        assign = bool(local_metadata.get("assign_to_params_buffers", False))
        for name, tensor in self._saved_tensors().items():
            key = prefix + name
            if key not in state_dict:
                if strict:
                    missing_keys.append(key)
                continue
            problem = self._load_one(name, tensor, key, state_dict[key], assign)
            if problem is not None:
                error_msgs.append(problem)
        self._load_extra(state_dict, prefix, strict, missing_keys, unexpected_keys)
        if strict:
            unexpected_keys.extend(self._unknown_keys(state_dict, prefix))

    def _saved_tensors(self) -> dict[str, Tensor]:
        pairs = itertools.chain(
            self._parameters.items(),
            (
                (name, buffer)
                for name, buffer in self._buffers.items()
                if name not in self._non_persistent_buffers_set
            ),
        )
        return {name: tensor for name, tensor in pairs if tensor is not None}

    def _load_one(
        self, name: str, tensor: Tensor, key: str, loaded: Tensor | int, assign: bool
    ) -> str | None:
        """Loads one tensor; gives the problem's text when it can't."""
        if not isinstance(loaded, Tensor):
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or '
                f"Tensor-like object from checkpoint but received {type(loaded)}"
            )
        if not is_lazy(tensor):
            if tensor.dim() == 0 and loaded.shape == (1,):
                loaded = loaded.reshape(())  # torch before 0.4 saved 0-d values as [1]
            if loaded.shape != tensor.shape:
                return (
                    f"size mismatch for {key}: copying a param with shape {loaded.shape} from "
                    f"checkpoint, the shape in current model is {tensor.shape}."
                )
        if tensor.is_meta and not loaded.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta "
                "parameter in the current model, which is a no-op. (Did you mean to pass "
                "`assign=True` to assign items in the state dictionary to their corresponding key "
                "in the module instead of copying them in place?)",
                stacklevel=2,
            )
        try:
            self._take(name, tensor, loaded, assign)
        except Exception as error:
            action = "swapping" if ON_CONVERSION["swap"] else "copying"
            return (
                f'While {action} the parameter named "{key}", whose dimensions in the model are '
                f"{tensor.size()} and whose dimensions in the checkpoint are {loaded.size()}, "
                f"an exception occurred : {error.args}."
            )
        return None

    def _take(self, name: str, tensor: Tensor, loaded: Tensor, assign: bool) -> None:
        with mindtorch.no_grad():
            if ON_CONVERSION["swap"]:
                new: Tensor = methodcaller("module_load", loaded, assign=assign)(tensor)
                if new is loaded or new is tensor:
                    raise RuntimeError(
                        "module_load returned one of self or other, please .detach() the result if"
                        " returning one of the inputs in module_load"
                    )
                if isinstance(tensor, Parameter):
                    new = Parameter(new, requires_grad=tensor.requires_grad)
                mindtorch.utils.swap_tensors(tensor, new)
            elif not assign:
                tensor.copy_(loaded)
            elif isinstance(tensor, Parameter):
                if not isinstance(loaded, Parameter):
                    loaded = Parameter(loaded, requires_grad=tensor.requires_grad)
                else:
                    loaded.requires_grad_(tensor.requires_grad)
                setattr(self, name, loaded)
            else:
                setattr(self, name, loaded)

    def _load_extra(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        strict: bool,
        missing: list[str],
        unexpected: list[str],
    ) -> None:
        key = prefix + EXTRA
        if type(self).set_extra_state is not StateDict.set_extra_state:
            if key in state_dict:
                self.set_extra_state(state_dict[key])
            elif strict:
                missing.append(key)
        elif strict and key in state_dict:
            unexpected.append(key)

    def _unknown_keys(self, state_dict: dict[str, Any], prefix: str) -> list[str]:
        tensor = self._saved_tensors()
        unknown = []
        for key in state_dict:
            if not key.startswith(prefix) or key == prefix + EXTRA:
                continue
            first, *rest = key[len(prefix) :].split(".", 1)
            # A dotted key belongs to the child of its first part, which judges it itself.
            if first not in (self._modules if rest else tensor):
                unknown.append(key)
        return unknown

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Runs `hook(module, prefix, keep_vars)` before state_dict."""
        return add_hook(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Any) -> RemovableHandle:
        """Runs `hook(module, state_dict, prefix, local_metadata)`
        after state_dict; returns None."""
        hook._from_public_api = True
        return add_hook(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was "
                "previously registered via register_state_dict_post_hook"
            )
        return add_hook(self._state_dict_hooks, hook)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        return add_hook(
            self._load_state_dict_pre_hooks, _WithModule(hook, self) if with_module else hook
        )

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Runs `hook(module, state_dict, prefix, …)` before a module loads its own tensors."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Runs `hook(module, incompatible_keys)` after a module and its children have loaded."""
        return add_hook(self._load_state_dict_post_hooks, hook)


class _WithModule:
    """A load hook that is given its module, which it does not keep alive; copies go with copies."""

    def __init__(self, hook: Callable[..., Any], module: StateDict) -> None:
        self.hook = hook
        self.module = weakref.ref(module)

    def __call__(self, *args: Any) -> Any:
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args)

    def __reduce__(self) -> tuple[object, ...]:
        return _WithModule, (self.hook, self.module())


_UNREACHABLE = (
    "Reached a code path in Module.{}() that should never be called. Please file an issue at"
    " https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to report this bug."
)
