"""Runs whole programs one after the other in this process; writes what each printed as JSON.

    python runner.py DEVICE OUTPUT PROGRAM...

`torch` is whatever `import torch` finds: torch, or mindtorch under `mindtorch-npu exec`.
"""

import contextlib
import io
import json
import os
import sys
import warnings

import torch


def run(path, device):
    """What a program prints on a device; its last line tells an error that it did not catch."""
    sys.argv = [path, device]
    shown = io.StringIO()
    # Each program starts as it would alone.
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float32)
    torch.set_printoptions(profile="default")
    with contextlib.redirect_stdout(shown), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with open(path, encoding="utf-8") as file:
                code = compile(file.read(), path, "exec")
            exec(code, {"__name__": "__main__"})
        except Exception as error:
            print(f"uncaught {type(error).__name__}: {str(error).splitlines()[:1]}")
    return shown.getvalue()


if __name__ == "__main__":
    device, output, *programs = sys.argv[1:]
    results = {os.path.basename(path): run(path, device) for path in programs}
    with open(output, "w", encoding="utf-8") as file:
        json.dump(results, file)
