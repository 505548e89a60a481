"""Owns Module: registration of parameters, buffers and children,
attribute access, the call, the repr."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ..._functional.queries import typename
from ..._tensor.tensor import Tensor
from ..._tensor.types import Self
from ..parameter import Buffer, Parameter
from ._conversion import Conversion
from ._hooks import (  # noqa: F401 - libraries look them up here
    GLOBAL_CALL_HOOKS,
    OWN_HOOKS,
    HookedCall,
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_buffer_registration_hooks,
    _global_forward_hooks,
    _global_forward_hooks_always_called,
    _global_forward_pre_hooks,
    _global_module_registration_hooks,
    _global_parameter_registration_hooks,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
    run_registration_hooks,
)
from ._state_dict import StateDict, _IncompatibleKeys
from ._traversal import Traversal

__all__ = [
    "Module", "_IncompatibleKeys", "register_module_backward_hook",
    "register_module_buffer_registration_hook", "register_module_forward_hook",
    "register_module_forward_pre_hook", "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook", "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]  # fmt: skip

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"
_FORWARD_PRE, _FORWARD, _BACKWARD_PRE, _BACKWARD = GLOBAL_CALL_HOOKS


def _forward_unimplemented(self: Any, *input: Any) -> Any:
    raise NotImplementedError(
        f'Module [{type(self).__name__}] is missing the required "forward" function'
    )


class Module(HookedCall, StateDict, Traversal, Conversion):
    """Base of every network module; subclasses assign tensors and modules, and define `forward`."""

    training: bool
    call_super_init: bool = False
    dump_patches: bool = False
    forward: Callable[..., Any] = _forward_unimplemented

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            if kwargs:
                name = next(iter(kwargs))
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument '{name}'"
                )
            if args:
                raise TypeError(
                    f"{type(self).__name__}.__init__() takes 1 positional argument "
                    f"but {len(args) + 1} were given"
                )
        # Past __setattr__, which would look for the dicts that are being made here.
        state = self.__dict__
        state["training"] = True
        state["_parameters"] = {}
        state["_buffers"] = {}
        state["_non_persistent_buffers_set"] = set()
        for name in OWN_HOOKS:
            if name == "_forward_hooks":  # in torch's order
                state["_is_full_backward_hook"] = None
            state[name] = OrderedDict()
        state["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not (
            self._backward_hooks
            or self._backward_pre_hooks
            or self._forward_hooks
            or self._forward_pre_hooks
            or _FORWARD
            or _FORWARD_PRE
            or _BACKWARD
            or _BACKWARD_PRE
        ):
            return self.forward(*args, **kwargs)
        return self._call_hooked(args, kwargs)

    _call_impl = __call__
    _wrapped_call_impl = __call__

    def __getattr__(self, name: str) -> Any:
        state = self.__dict__
        try:
            return state["_parameters"][name]
        except KeyError:
            pass
        for where in ("_buffers", "_modules"):
            if where in state and name in state[where]:
                return state[where][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        state = self.__dict__
        parameters = state.get("_parameters")
        if isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, keep=parameters)
            self.register_parameter(name, value)
        elif parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' "
                    "(torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            self._set_module(name, value)
        elif name in state.get("_modules", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as child module '{name}' "
                    "(torch.nn.Module or None expected)"
                )
            state["_modules"][name] = run_registration_hooks(
                "module_registration", self, name, value
            )
        elif name in state.get("_buffers", ()) or isinstance(value, Buffer):
            self._set_buffer(name, value)
        else:
            super().__setattr__(name, value)

    def _forget(self, name: str, keep: Any) -> None:
        """Drops `name` from every other place that could hold it."""
        state = self.__dict__
        state.pop(name, None)
        for where in (state["_parameters"], state["_buffers"], state["_modules"]):
            if where is not keep:
                where.pop(name, None)
        state["_non_persistent_buffers_set"].discard(name)

    def _set_module(self, name: str, value: Module) -> None:
        modules = self.__dict__.get("_modules")
        if modules is None:
            raise AttributeError("cannot assign module before Module.__init__() call")
        self._forget(name, keep=modules)
        modules[name] = run_registration_hooks("module_registration", self, name, value)

    def _set_buffer(self, name: str, value: Tensor | int) -> None:
        buffers = self.__dict__.get("_buffers")
        if buffers is None:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(
                f"cannot assign '{typename(value)}' as buffer '{name}' "
                "(torch.nn.Buffer, torch.Tensor or None expected)"
            )
        if isinstance(value, Buffer):
            persistent = getattr(value, "persistent", True)
            self._forget(name, keep=buffers)
            self.register_buffer(name, value, persistent)
        else:
            buffers[name] = run_registration_hooks("buffer_registration", self, name, value)

    def __delattr__(self, name: str) -> None:
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            super().__delattr__(name)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in OWN_HOOKS:
            self.__dict__.setdefault(name, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._buffers}
        return sorted(name for name in names | set(self._modules) if not name[0].isdigit())

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a buffer; one that is not persistent stays out of state dicts."""
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' "
                "(torch Tensor or None required)"
            )
        self._buffers[name] = run_registration_hooks("buffer_registration", self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter; None keeps the name for one that is off, such as `bias=False`."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{typename(param)}' object to parameter '{name}' "
                "(torch.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be "
                "created explicitly. To express 'weight' as a function of another Tensor, "
                "compute the value in the forward() method."
            )
        if param is not None:
            param = run_registration_hooks("parameter_registration", self, name, param)
        self._parameters[name] = param

    def _check_name(self, kind: str, name: int | str, registry: dict[str, Any]) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
        if "." in name:
            suffix = f", got: {name}" if kind == "module" else ""
            raise KeyError(f'{kind} name can\'t contain "."{suffix}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in registry:
            raise KeyError(f"attribute '{name}' already exists")

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a child module under `name`."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        hooked = run_registration_hooks("module_registration", self, name, module)
        self._modules[name] = hooked

    def register_module(self, name: str, module: Module | None) -> None:
        """Another name of add_module."""
        self.add_module(name, module)

    def train(self, mode: bool = True) -> Self:
        """Sets training mode on the whole tree."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Sets evaluation mode on the whole tree."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Says for every parameter whether autograd records operations on it."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops (or zeroes) the gradient of every parameter."""
        for parameter in self.parameters():
            if parameter.grad is None:
                continue
            if set_to_none:
                parameter.grad = None
                continue
            if parameter.grad.grad_fn is not None:
                parameter.grad.detach_()
            else:
                parameter.grad.requires_grad_(False)
            parameter.grad.zero_()

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Accepted for torch's sake: there is no compiler, calls stay eager."""

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """Gives what the repr shows between the parentheses; subclasses override it."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [
            f"({name}): {_indented(repr(module))}" for name, module in self._modules.items()
        ]
        head = f"{self._get_name()}("
        if len(lines) == 1 and not children:
            return f"{head}{lines[0]})"
        body = lines + children
        return head + ("\n  " + "\n  ".join(body) + "\n" if body else "") + ")"


for _part in (HookedCall, StateDict, Traversal, Conversion):
    for _name, _member in vars(_part).items():
        if hasattr(_member, "__qualname__") and not _name.startswith("__"):
            _member.__qualname__ = f"Module.{_name}"  # as errors about its arguments name it


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")
