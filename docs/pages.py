"""The generated pages of docs/: path → the function that renders it."""

from collections.abc import Callable

import click
from mutation_page import mutation_page
from simulator_ops_page import simulator_ops_page
from type_stubs import aten_page, methods_page


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
    from mindtorch_npu.main import group

    return (
        "# Command line\n\nGenerated from `--help` by `docs/check.py --write`; do not edit.\n\n"
        + _command_help(group, "mindtorch-npu", None)
    )


def errors_page() -> str:
    """Every status code: symbol, exception, remedy; then remedies of single operators."""
    from aclnn_bindings.interface import catalog
    from aclnn_bindings.runtime import remedies
    from aclnn_bindings.runtime import status as errors

    names = errors.StatusCodes(catalog.load(catalog.versions()[-1])).names()
    rows = [
        f"| {code} | `{name}` | `{errors.exception_class(name, code).__name__}` "
        f"| {remedies.remedy_for(name) or ''} |"
        for code, name in sorted(names.items())
    ]
    own = [f"| `{op}` | `{n}` | {text} |" for (op, n), text in sorted(remedies.OP_REMEDIES.items())]
    return "\n".join(
        [
            "# Status codes\n",
            "Generated from `aclnn_bindings` by `docs/check.py --write`; do not edit.\n",
            "A call that fails raises `aclnn_bindings.errors.AclError` or one of its classes, with",
            "`call`, `phase`, `code`, `name`, `message` (CANN's own), `op`, `shapes`, `dtypes` and",
            "`remedy`. Numbers come from the headers of the install in use; these are those of the",
            'newest catalog. "Reported" marks what users met on hardware.\n',
            "| code | symbol | exception | remedy |",
            "|---|---|---|---|",
            *rows,
            "\n## Remedies of single operators\n",
            "| operator | symbol | remedy |",
            "|---|---|---|",
            *own,
            "",
        ]
    )


GENERATED: dict[str, Callable[[], str]] = {
    "docs/cli.md": cli_page,
    "docs/errors.md": errors_page,
    "docs/mutation_scores.md": mutation_page,
    "docs/simulator_ops.md": simulator_ops_page,
    "mindtorch/_tensor/_methods.pyi": methods_page,
    "mindtorch/ops/_aten.pyi": aten_page,
}
