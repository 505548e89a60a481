"""Runs calls written as text on the simulator: `aclnnAdd(FLOAT[2], FLOAT[2]@NCHW, 1.0, FLOAT[2])`.

As a program it reads calls, a line each, and answers each with 0, or a code and CANN's message.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

# Product code of the documents → the profile of the simulator.
PROFILES = {"910b": "Ascend910B2", "A3": "Ascend910_9392", "910": "Ascend910A",
            "310p": "Ascend310P3", "310b": "Ascend310B1", "950": "Ascend950PR_9599"}  # fmt: skip
_TENSOR = re.compile(r"\b([A-Z][A-Z0-9]*)\[([\d,]*)\](?:@([A-Z]+))?")


def answers(calls: Sequence[str], product: str) -> list[str]:
    """What a device of `product` answers to each call, from one child process."""
    child = subprocess.run(
        [sys.executable, __file__], input="".join(f"{call}\n" for call in calls), text=True,
        capture_output=True, env={**os.environ, "ACLSIM_SOC": PROFILES[product]}, check=True,
    )  # fmt: skip
    return child.stdout.splitlines()


def fits(answer: str, expected: str) -> bool:
    """`expected` is a code and words of the message, or `!0` for any refusal."""
    code, _, words = expected.partition(" ")
    given = answer.partition(" ")[0]
    return (given != "0" if code == "!0" else given == code) and words in answer


def _call(cann: Any, text: str) -> str:
    from aclnn_bindings.errors import BindingError
    from aclnn_bindings.runtime.status import AclError

    def tensor(dtype: str, dims: tuple[int, ...], form: str) -> Any:
        made = cann.empty(dims, dtype)
        return made.view(dims, None, 0, form) if form else made

    name, _, rest = text.partition("(")
    args = _TENSOR.sub(lambda m: f't("{m[1]}", ({m[2]}{"," if m[2] else ""}), "{m[3] or ""}")',
                       rest.rpartition(")")[0])  # fmt: skip
    try:
        cann.ops[name](*eval(f"({args},)", {"t": tensor}))
        cann.runtime.current_stream().synchronize()
    except AclError as error:
        return f"{error.code} {error.message}".replace("\n", " ")
    except BindingError as error:
        return f"binding {error}".replace("\n", " ")
    return "0"


def main() -> None:
    """Answer every line of standard input."""
    import aclnn_bindings

    cann = aclnn_bindings.open(simulator=True)
    for line in sys.stdin:
        print(_call(cann, line.strip()), flush=True)


if __name__ == "__main__":
    main()
