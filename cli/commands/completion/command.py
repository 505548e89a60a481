"""The command `completion`: prints the script of a shell, click's own."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import get_completion_class

from ... import choices, exits

_PROGRAM: Final = "mindtorch-npu"
EPILOG = """\b
Examples:
  eval "$(mindtorch-npu completion bash)"                       this shell; ~/.bashrc: all
  mindtorch-npu completion zsh >> ~/.zshrc
  mindtorch-npu completion fish > ~/.config/fish/completions/mindtorch-npu.fish"""


@click.command(epilog=EPILOG)
@click.argument("shell", type=choices.Word(("bash", "zsh", "fish")))
def completion(shell: str) -> int:
    """Print the script that completes commands, options and operators in a shell."""
    kind = get_completion_class(shell)
    assert kind is not None
    variable = f"_{_PROGRAM.replace('-', '_').upper()}_COMPLETE"
    click.echo(kind(click.Group(), {}, _PROGRAM, variable).source())
    return exits.OK
