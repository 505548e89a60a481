"""Owns a command whose first word may name a mode: a command with options of its own."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import click
from click.shell_completion import CompletionItem

from ...bisect import BisectCommand


class CheckModes(BisectCommand):
    """`modes` by name; a first word that is none of them, and every word after `--`, is an
    argument of the command itself."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.modes: dict[str, click.Command] = {}

    def context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:  # fmt: skip
        mode = self.modes.get(args[0]) if args else None
        if mode is None:
            self._refuse_misspelt(args)
            return super().context(info_name, args, parent, **extra)
        return mode.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)

    def _refuse_misspelt(self, args: list[str]) -> None:
        """A first word that is nearly a mode, and no operator, is refused with the mode's name."""
        close = get_close_matches(args[0], self.modes, 1, 0.7) if args else []
        if close:
            from mindtorch.ops import OPS

            if args[0] not in OPS:
                text = f"{args[0]}: no such mode or operator; did you mean {close[0]}?"
                raise click.UsageError(text)

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
