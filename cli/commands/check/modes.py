"""Owns a command whose first word may name a mode: a command with options of its own."""

from __future__ import annotations

from typing import Any

import click
from click.shell_completion import CompletionItem


class Modes(click.Command):
    """`modes` by name; a first word that is none of them, and every word after `--`, is an
    argument of the command itself."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.modes: dict[str, click.Command] = {}

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:  # fmt: skip
        mode = self.modes.get(args[0]) if args else None
        if mode is None:
            return super().make_context(info_name, args, parent, **extra)
        return mode.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        limit = formatter.width - 6 - max(map(len, self.modes))
        with formatter.section("Modes, as the first word"):
            formatter.write_dl([
                (name, mode.get_short_help_str(limit)) for name, mode in self.modes.items()
            ])  # fmt: skip

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [CompletionItem(n) for n in self.modes if n.startswith(incomplete)]
        return names + super().shell_complete(ctx, incomplete)
