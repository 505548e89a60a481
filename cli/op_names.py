"""Owns shell completion of operator names."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem


def complete(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Rows whose name starts with what was typed; ACLNN functions once `acl` is typed."""
    from mindtorch.ops import OPS

    names = set(OPS)
    if typed.startswith("acl"):
        names = {call.name for op in OPS.values() for call in op.aclnn}
    return [CompletionItem(name) for name in sorted(names) if name.startswith(typed)]
