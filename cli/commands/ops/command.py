"""The command `ops`: its options, as a frozen record for the listing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ... import op_names
from .options import OpsOptions

EPILOG = """\b
Examples:
  mindtorch-npu ops
  mindtorch-npu ops --family pointwise
  mindtorch-npu ops matmul aclnnRmsNorm
  mindtorch-npu ops --html atlas
  mindtorch-npu ops --html atlas --results fleet_results
  mindtorch-npu ops matmul --results fleet_results

Exit codes: 0 ok, 2 usage, 5 no result could be read in the folder of --results."""


@click.command(epilog=EPILOG)
@click.argument("names", nargs=-1, metavar="NAME…", shell_complete=op_names.complete)
@click.option("--family", "families", multiple=True, metavar="F", help="pointwise, matrix, nn, …")
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
@click.option("--md", "as_md", is_flag=True, help="Write Markdown.")
@click.option("--html", "site", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
              help="Write the atlas of every ACLNN operator there.")  # fmt: skip
@click.option("--results", metavar="FOLDER",
              type=click.Path(file_okay=False, exists=True, path_type=Path),
              help="Show what machines measured: JSON files of probe, check and bench, and "
                   "journals, in this folder and below.")  # fmt: skip
@click.option("--hosts", is_flag=True,
              help="With --results: name the machines; default: count them.")  # fmt: skip
def ops(**values: Any) -> int:
    """List operators: schema, ACLNN calls, devices, derivative, rule. With NAME: all about it.

    NAME is a torch operator (add) or an ACLNN one (aclnnAdd) of any known CANN version.
    """
    from . import listing

    if values["hosts"] and not values["results"]:
        raise click.UsageError("--hosts: names the machines of --results FOLDER")
    return listing.run(OpsOptions(**values))
