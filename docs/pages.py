"""What is generated: pages of the site, and files that `docs/check.py` holds up to date."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from textwrap import fill

import click
from mutation_page import mutation_page
from type_stubs import aten_page, functions_page, methods_page


def _command_help(command: click.Command, name: str, parent: click.Context | None) -> str:
    context = click.Context(command, info_name=name, parent=parent, terminal_width=90)
    text = f"## `{context.command_path}`\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for sub in command.list_commands(context):
            child = command.get_command(context, sub)
            assert child is not None
            text += "\n" + _command_help(child, sub, context)
    for sub, mode in getattr(command, "modes", {}).items():
        text += "\n" + _command_help(mode, sub, context)
    return text


def cli_page() -> str:
    """`--help` of the command and of every subcommand."""
    from mindtorch_npu.main import group

    return "# Command line\n\nGenerated from `--help`.\n\n" + _command_help(
        group, "mindtorch-npu", None
    )


def errors_page() -> str:
    """Codes, results of HCCL, message ids and texts, each with its cause and remedy."""
    from aclnn_bindings.interface import catalog
    from aclnn_bindings.runtime import message_ids, remedies, results, status as errors

    names = errors.StatusCodes(catalog.load(catalog.versions()[-1])).names()
    codes = [
        (str(code), f"`{name}`", f"`{errors.exception_class(name, code).__name__}`", advice.cause,
         advice.fix)
        for code, name in sorted(names.items())
        if (advice := remedies.codes().get(name)) is not None
    ]  # fmt: skip
    own = [
        (f"`{op}`", f"`{name}`", advice.cause, advice.fix)
        for (op, name), advice in sorted(remedies.operators().items())
    ]
    below = [
        (family, str(number), f"`{symbol}`", advice.cause, advice.fix)
        for family, one in results.families().items()
        for number, (symbol, advice) in one.rows.items()
    ]
    ids = [
        (f"`{key}`", known.title, advice.cause, advice.fix)
        for key, known in message_ids.listed().items()
        for advice in (known.of(""),)
    ]
    texts = [
        (f"`{rule.pattern.pattern}`", rule.advice.cause, rule.advice.fix, rule.advice.source)
        for rule in remedies.rules()
    ]
    return "\n".join(
        [
            "# Status codes\n",
            "Generated from `aclnn_bindings`.\n",
            "A call that fails raises `aclnn_bindings.errors.AclError` or one of its classes, with",
            "`call`, `phase`, `code`, `name`, `message` (CANN's own), `op`, `shapes`, `dtypes` and",
            "`remedy`. The remedy is that of CANN's message where one is known, else that of the",
            "operator with this code, else that of the code. `mindtorch-npu explain` says the same",
            "of a code, a message or a log, without a device.\n",
            "Numbers come from the headers of the install in use; these are those of the newest",
            'catalog. "Reported" marks what users met on hardware.\n',
            *_table(("code", "symbol", "exception", "cause", "remedy"), codes),
            "\n## Remedies of single operators\n",
            *_table(("operator", "symbol", "cause", "remedy"), own),
            "\n## Results of HCCL, the driver, DCMI and GE\n",
            *_table(("family", "result", "symbol", "cause", "remedy"), below),
            "\n## Message ids\n",
            "The second character is the module; from 9000 on, the error is an inner one, which",
            "passes on another failure: the text after it says which.\n",
            *_table(("id", "title", "cause", "remedy"), ids),
            "\n## Messages\n",
            "Regular expressions, without regard to case; the first that fits a line counts. `{1}`",
            "is what its first group matched.\n",
            *_table(("message", "cause", "remedy", "source"), texts),
            "",
        ]
    )


def field_page() -> str:
    """What people met on real NPUs: each observation, and whether it is held."""
    text = Path(__file__).parents[1] / "tests/field/observations.json"
    rows = json.loads(text.read_text(encoding="utf-8"))
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    states = ("right", "partly", "wrong")
    counts = [
        (kind, *(str(sum(r["kind"] == kind and r["state"] == s for r in rows)) for s in states))
        for kind in kinds
    ]
    parts = [
        "# What people met on real NPUs\n",
        "Generated from `tests/field/observations.json`.\n",
        "Each row is an observation of real CANN: a call and what it answered, or a text of an",
        "error and the advice with which the public thread or document ended. Observations are",
        "third-party. `tests/field/` runs each: calls on the simulator of that product, texts",
        "through `mindtorch-npu explain`. The state says how they agree: `right`; `partly`,",
        "refused with another code; `wrong`, which the test holds to be so until it is mended.",
        "A code of `!0` is any refusal. Evidence, in this order, decides where sources disagree:",
        "measured on hardware, what a client relies on, the newest document, the header.\n",
        *_table(("class", *states), counts),
    ]
    for kind in kinds:
        cells = [
            (f"[{r['source']}]({r['url']})" if r["url"] else r["source"], r["release"],
             r["product"], f"`{r.get('call') or r['says']}`",
             r["answer"] if "answer" in r else "; ".join(r["advice"]), r["state"])
            for r in rows if r["kind"] == kind
        ]  # fmt: skip
        columns = ("source", "release", "product", "call or text", "answer or advice", "state")
        parts += [f"\n## {kind.capitalize()}\n", *_table(columns, cells)]
    return "\n".join([*parts, ""])


def _table(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    """A Markdown table; a bar inside a cell is escaped."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines = [columns, ["---"] * len(columns), *cells]
    return ["|" + "|".join(f" {cell} " if cell != "---" else cell for cell in line) + "|"
            for line in lines]  # fmt: skip


def needed_operators() -> str:
    """The ACLNN operators that mindtorch's rows call, a paragraph for each family of rows."""
    import mindtorch  # noqa: F401 - its rows are declared when it is imported
    from mindtorch.ops import OPS

    family_of: dict[str, str] = {}
    for op in OPS.values():
        for call in op.kernels.aclnn:
            family_of.setdefault(call.name, op.family)
    names = {f: [n for n in family_of if family_of[n] == f] for f in family_of.values()}
    return "\n\n".join(fill(" ".join(some), 100) for some in names.values()) + "\n"


# Pages of the site alone: generated_pages.py adds them when mkdocs builds it.
REFERENCE: dict[str, Callable[[], str]] = {
    "cli.md": cli_page,
    "errors.md": errors_page,
    "field.md": field_page,
    "mutation_scores.md": mutation_page,
}
GENERATED: dict[str, Callable[[], str]] = {
    "cli/commands/probe/needed_operators.txt": needed_operators,
    "mindtorch/_tensor/_methods.pyi": methods_page,
    "mindtorch/ops/_aten.pyi": aten_page,
    "mindtorch/ops/_functions.pyi": functions_page,
}
