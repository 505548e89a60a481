"""Owns ErrorHandler: writes a process's error to the file that its launcher names."""

from __future__ import annotations

import faulthandler
import json
import os
import time
import traceback
import warnings
from pathlib import Path


class ErrorHandler:
    """Writes to the file of TORCHELASTIC_ERROR_FILE, if it is set."""

    def initialize(self) -> None:
        """Show the stack of a process that a signal ends."""
        try:
            faulthandler.enable(all_threads=True)
        except Exception as error:
            warnings.warn(
                f"Unable to enable fault handler. {type(error).__name__}: {error}", stacklevel=2
            )

    def record_exception(self, e: BaseException) -> None:
        """Write an error with its stack and the time."""
        trace = "".join(traceback.format_exception(type(e), e, e.__traceback__))
        self._write(f"{type(e).__name__}: {e}", trace)

    def dump_error_file(self, rootcause_error_file: str, error_code: int = 0) -> None:
        """Write the error of a process below as this one's, with its exit code."""
        text = json.loads(Path(rootcause_error_file).read_text())
        if error_code and isinstance(text["message"], dict):
            text["message"]["errorCode"] = error_code
        if path := os.environ.get("TORCHELASTIC_ERROR_FILE"):
            Path(path).write_text(json.dumps(text))

    def _write(self, message: str, trace: str) -> None:
        if not (path := os.environ.get("TORCHELASTIC_ERROR_FILE")):
            return
        info = {"py_callstack": trace, "timestamp": str(int(time.time()))}
        text = {"message": {"message": message, "extraInfo": info}}
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(json.dumps(text))
