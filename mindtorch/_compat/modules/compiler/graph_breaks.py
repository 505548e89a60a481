"""Owns what is said where a compiled function cannot be one graph, or a call in it fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mindtorch.fx.call_sites import user_stack

_SITE = "https://meta-pytorch.github.io/compile-graph-break-site/gb/gb"
_MAY_FAIL = (
    "Your code may result in an error when running in eager. Please double check that your code"
    " doesn't contain a similar error when actually running eager/uncompiled. You can do this by"
    ' removing the `torch.compile` call, or by using `torch.compiler.set_stance("force_eager")`. '
)
_DATA_DEPENDENT = (
    "Detected data-dependent branching (e.g. `if my_tensor.sum() > 0:`). Dynamo does not support"
    " tracing dynamic control flow."
)
_BRANCHLESS = (
    "For the common pattern `if tensor_cond: x = transform(x)` (e.g. clamping inf/nan values),"
    " consider making the code branchless by always applying the transform. Operations like"
    " torch.clamp, torch.nan_to_num, and torch.where are typically no-ops on well-behaved inputs"
    " and compile without graph breaks."
)
VERBOSE = (
    "Set TORCHDYNAMO_VERBOSE=1 for the internal stack trace (please do this especially if you're"
    ' reporting a bug to PyTorch). For even more developer context, set TORCH_LOGS="+dynamo"\n'
)


@dataclass(frozen=True)
class GraphBreak:
    """What ends a graph: its kind, why, what to do, and torch's number of it."""

    kind: str
    explanation: str
    hints: tuple[str, ...] = ()
    context: str = ""
    number: str = ""

    def __str__(self) -> str:
        hints = "".join(f"  Hint: {hint}\n" for hint in self.hints)
        page = (
            f"\n\n For more details about this graph break, please visit: {_SITE}{self.number}.html"
        )
        return (
            f"{self.kind}\n  Explanation: {self.explanation}\n{hints}\n"
            f"  Developer debug context: {self.context}{page * bool(self.number)}"
        )

    def located(self, error: Exception | None = None) -> str:
        """The text with the program's line, or that of an error."""
        return f"{self}\n\nfrom user code:\n {user_stack(error)}\n{VERBOSE}"


def branch(comparison: str) -> GraphBreak:
    """A condition of a tensor; `comparison` is how it was computed, "" if unknown."""
    how = (
        "\n\n      The branch condition involves a tensor computed as follows:\n"
        "        " + comparison.replace("\n", "\n        ") + "\n    "
    )
    hints = (
        "This graph break is fundamental - it is unlikely that Dynamo will ever be able to trace"
        " through your code. Consider finding a workaround.",
        "Use `torch.cond` to express dynamic control flow.",
    )
    return GraphBreak(
        "Data-dependent branching", _DATA_DEPENDENT + how * bool(comparison),
        (_BRANCHLESS, *hints) if comparison else hints, "attempted to jump with TensorVariable()",
        "0170",
    )  # fmt: skip


def builtin(name: str, kinds: Sequence[str], keywords: bool) -> GraphBreak:
    """A call of a function of Python that no graph has, of arguments of these kinds."""
    variables = ", ".join(
        f"<class 'torch._dynamo.variables.{v}'>"
        for v in ("tensor.TensorVariable" if k == "Tensor" else "constant.ConstantVariable"
                  for k in kinds)
    )  # fmt: skip
    return GraphBreak(
        "Failed to trace builtin operator",
        f"Dynamo does not know how to trace builtin operator `{name}` with argument types"
        f" {list(kinds)} (has_kwargs {keywords})",
        (
            f"Avoid calling builtin `{name}` with argument types {list(kinds)}. Consider using an"
            f" equivalent alternative function/method to `{name}`.",
            "If you are attempting to call a logging function (e.g. `print`), you can try adding it"
            " to `torch._dynamo.config.reorderable_logging_functions`.",
            "Please report an issue to PyTorch.",
        ),
        f"builtin {name} [{variables}] {keywords}", "0059",
    )  # fmt: skip


def observed(error: Exception) -> GraphBreak:
    """An exception that the program does not catch."""
    return GraphBreak(
        "Observed exception",
        "Dynamo found no exception handler at the top-level compiled function when encountering an"
        " exception. Exception will propagate outside the compiled region.",
        (
            _MAY_FAIL,
            "It may be possible to write Dynamo tracing rules for this code. Please report an issue"
            " to PyTorch if you encounter this graph break often and it is causing performance"
            " issues.",
        ),
        f"raised exception {error!r}", "0088",
    )  # fmt: skip


def asked_for(message: str) -> GraphBreak:
    """torch._dynamo.graph_break."""
    values = f"ConstantVariable(str: {message!r})" if message else ""
    return GraphBreak(
        "Call to `torch._dynamo.graph_break()`", "User-inserted graph break. Message: None",
        ("Remove the `torch._dynamo.graph_break()` call.",),
        f"Called `torch._dynamo.graph_break()` with args `[{values}]`, kwargs `{{}}`", "0025",
    )  # fmt: skip


def disabled(function: object, reason: object) -> GraphBreak:
    """A function that torch.compiler.disable gives."""
    return GraphBreak(
        "Skip calling `torch.compiler.disable()`d function",
        f"Skip calling function `{function}` since it was wrapped with `torch.compiler.disable`"
        f" (reason: {reason})",
        ("Remove the `torch.compiler.disable` call",), str(function), "0098",
    )  # fmt: skip


METHODS = {
    "backward": GraphBreak(
        "Unsupported Tensor.backward() call",
        "Dynamo currently does not support tracing `Tensor.backward()` when trace_autograd_ops is"
        " off.",
        ("Set torch._dynamo.trace_autograd_ops=True",),
        "call_method TensorVariable() backward None None None None", "0123",
    ),
    "tolist": GraphBreak(
        "Tensor.tolist() with non-integer tensor",
        "Dynamo currently does not support tracing `tolist()` on non-integer tensors.",
        (
            "Ensure the input tensor to `tolist()` is an integer type (e.g., int8, int16, int32,"
            " int64).",
        ),
        "call_method TensorVariable() to_list", "0109",
    ),
}  # fmt: skip


def failed_call(call: str, error: Exception) -> str:
    """The text of a call that fails on tensors without values."""
    broken = GraphBreak(
        "RuntimeError when making fake tensor call",
        f"Dynamo failed to run FX node with fake tensors: {call}: got {error!r}", (_MAY_FAIL,),
        "", "4315",
    )  # fmt: skip
    return broken.located()
