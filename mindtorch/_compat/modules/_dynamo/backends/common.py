"""torch._dynamo.backends.common: a backend of compilers for forward and backward graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mindtorch.fx import GraphModule

from ..._functorch.aot_autograd import aot_module_simplified


class AotAutograd:
    """A backend of torch.compile: options are those of aot_module_simplified."""

    def __init__(self, **kwargs: Any) -> None:
        self.__name__, self.kwargs = "compiler_fn", kwargs

    def __call__(
        self, gm: GraphModule, example_inputs: Sequence[Any], **kwargs: Any
    ) -> Callable[..., Any]:
        return aot_module_simplified(gm, example_inputs, **{**self.kwargs, **kwargs})


def aot_autograd(**kwargs: Any) -> AotAutograd:
    """A backend that gives each graph's forward and backward parts to compilers."""
    return AotAutograd(**kwargs)
