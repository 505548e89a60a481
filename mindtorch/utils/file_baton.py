"""torch.utils.file_baton: a file that one of several processes makes, and the others wait for."""

from __future__ import annotations

import os
import time
import warnings


class FileBaton:
    """A lock by a file's existence: who makes it holds it, who does not waits until it is gone."""

    def __init__(
        self,
        lock_file_path: str,
        wait_seconds: float = 0.1,
        warn_after_seconds: float | None = None,
    ) -> None:
        self.lock_file_path, self.wait_seconds = lock_file_path, wait_seconds
        self.warn_after_seconds = warn_after_seconds
        self.fd: int | None = None

    def try_acquire(self) -> bool | None:
        """Whether the file was made by this call."""
        try:
            self.fd = os.open(self.lock_file_path, os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return False
        return True

    def wait(self) -> None:
        """Wait until the file is gone; says so once after `warn_after_seconds`."""
        start, silent = time.monotonic(), self.warn_after_seconds is None
        while os.path.exists(self.lock_file_path):
            time.sleep(self.wait_seconds)
            if not silent and time.monotonic() - start > (self.warn_after_seconds or 0):
                silent = True
                warnings.warn(
                    f'Waited on lock file "{self.lock_file_path}" for {self.warn_after_seconds}'
                    " seconds.",
                    stacklevel=2,
                )

    def release(self) -> None:
        """Remove the file."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
        os.remove(self.lock_file_path)
