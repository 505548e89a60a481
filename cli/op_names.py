"""Owns shell completion of operator names."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem


def complete(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Rows whose name starts with what was typed; ACLNN operators once `acl` is typed."""
    from mindtorch.ops import OPS

    names = set(OPS)
    if typed.startswith("acl"):
        from aclnn_bindings.interface import catalog

        names = {name for v in catalog.versions() for name in catalog.load(v).ops}
    return [CompletionItem(name) for name in sorted(names) if name.startswith(typed)]
