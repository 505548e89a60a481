"""The generated pages of docs/: path → the function that renders it."""

from collections.abc import Callable

import click


def _command_help(command: click.Command, name: str, parent: click.Context | None) -> str:
    context = click.Context(command, info_name=name, parent=parent, terminal_width=90)
    text = f"## `{context.command_path}`\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for sub in command.list_commands(context):
            child = command.get_command(context, sub)
            assert child is not None
            text += "\n" + _command_help(child, sub, context)
    return text


def cli_page() -> str:
    """`--help` of the command and of every subcommand."""
    from mindtorch_npu.main import cli

    return (
        "# Command line\n\nGenerated from `--help` by `docs/check.py --write`; do not edit.\n\n"
        + _command_help(cli, "mindtorch-npu", None)
    )


GENERATED: dict[str, Callable[[], str]] = {
    "docs/cli.md": cli_page,
}
