"""Owns what draft_export says beside a program: whether it found something wrong with it."""

from __future__ import annotations

from collections.abc import Mapping


class DraftExportReport:
    """What is wrong with a program, in `failures`."""

    __module__ = "mindtorch.export._draft_export"

    def __init__(
        self, failures: list[object], str_to_filename: Mapping[int, str] | None = None,
        expressions_created: Mapping[int, object] | None = None,
        op_profiles: Mapping[str, object] | None = None,
    ):  # fmt: skip
        self.failures, self.str_to_filename = failures, dict(str_to_filename or {})
        self.expressions_created = dict(expressions_created or {})
        self.op_profiles = dict(op_profiles or {})

    def successful(self) -> bool:
        """Whether nothing is."""
        return not self.failures

    def __repr__(self) -> str:
        return f"DraftExportReport({self.failures})"

    def __str__(self) -> str:
        line = "#" * 94
        return (
            f"\x1b[92m\n{line}\nCongratulations: No issues are found during export, and it was able"
            " to soundly produce a graph.\nYou can now change back to torch.export.export()\n"
            f"{line}\n\x1b[0m"
        )

    def apply_suggested_fixes(self) -> None:
        """NotImplementedError, as in torch."""
        raise NotImplementedError("Not implemented yet")
