"""Owns the exceptions of status codes: name, detail, remedy; refuses to invent a code's number.

Numbers come from the headers that the install declares, then from the shipped catalog (CANN's
`acl_base.h`, `rt_error_codes.h`, `op_errno.h`). Ranges: 1xxxxx the caller, 2xxxxx resources and
support, 3xxxxx state, 5xxxxx inside CANN or on the device.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from ..errors import BindingError
from ..interface.signature import WORKSPACE_SUFFIX, Declarations
from .remedies import remedy_for

_CODE_NAME: Final = re.compile(r"ACL(NN|RT|DVPP)?_ERR(OR)?_")
_CODE_RANGE: Final = range(100_000, 600_000)


class AclError(BindingError, RuntimeError):
    """A call returned a status code other than success.

    `call` is the C function; `phase` 1 or 2 for operators, else None; `code` its number and `name`
    that number's symbol; `message` CANN's own text; `op`, `shapes`, `dtypes` what was asked for;
    `remedy` what to do about it, looked up when it is first read.
    """

    call: str
    phase: int | None
    code: int
    op: str | None

    def __init__(
        self,
        call: str,
        code: int,
        *,
        phase: int | None = None,
        name: str = "",
        message: str = "",
        op: str | None = None,
        shapes: Sequence[Sequence[int]] = (),
        dtypes: Sequence[str] = (),
        remedy: str | Callable[[], str | None] | None = None,
    ) -> None:
        self.call, self.phase, self.code, self.op = call, phase, code, op
        self.name: str = name or f"unknown code {code}"
        self.message: str = message.strip()
        self.shapes: tuple[tuple[int, ...], ...] = tuple(tuple(shape) for shape in shapes)
        self.dtypes: tuple[str, ...] = tuple(dtypes)
        self._remedy = remedy
        super().__init__(call, code)

    @property
    def remedy(self) -> str | None:
        """What to do about it; None where nothing is known. Hundreds of patterns are tried."""
        if callable(self._remedy):
            self._remedy = self._remedy()
        return self._remedy

    def __str__(self) -> str:
        lines = [f"{self.call} failed with {self.code} ({self.name})"]
        if self.phase is not None:
            lines[0] += f" in phase {self.phase} of {self.op or self.call}"
        if operands := self.given():
            lines.append(f"given: {operands}")
        if self.message:
            lines.append(f"CANN says: {self.message}")
        if self.remedy:
            lines.append(f"remedy: {self.remedy}")
        return "\n  ".join(lines)

    def given(self) -> str:
        """The tensors of the call, such as `FLOAT[2, 3], INT64[4]`."""
        dtypes = [*self.dtypes, *[""] * (len(self.shapes) - len(self.dtypes))]
        shapes = [str(list(s)) for s in self.shapes] + [""] * (len(dtypes) - len(self.shapes))
        return ", ".join(d + s for d, s in zip(dtypes, shapes, strict=True))

    def __reduce__(self) -> tuple[object, ...]:
        state = {k: v for k, v in self.__dict__.items() if k[0] != "_"}
        return (_rebuild, (type(self), {**state, "remedy": self.remedy}))


def _rebuild(kind: type[AclError], state: dict[str, object]) -> AclError:
    error = kind(state.pop("call"), state.pop("code"), **state)  # type: ignore[arg-type]
    return error


class AclParameterError(AclError, ValueError):
    """An argument was refused: NULL, dtype, shape, range or handle (1xxxxx)."""


class OutOfMemoryError(RuntimeError):
    """What programs written for torch catch where a device's memory is exhausted."""


class AclOutOfMemoryError(AclError, OutOfMemoryError, MemoryError):
    """Host or device memory is exhausted."""


class AclUnsupportedError(AclError, NotImplementedError):
    """The SoC, driver or kernels package does not have what was asked for."""


class AclDeviceError(AclError):
    """A kernel or the device failed, possibly in an earlier asynchronous call (507xxx)."""


class AclTimeoutError(AclDeviceError, TimeoutError):
    """A wait, a task or a report took longer than was allowed; what it waited for goes on."""


class AclAbortedError(AclDeviceError):
    """The work was stopped from outside: a task or a stream was aborted."""


class AclDeviceLostError(AclDeviceError):
    """An earlier failure broke the device's context: nothing works on it before it is reset.

    The way back is `cann.close()`, which resets the device, and a new use of `cann`; in mindtorch
    `torch.npu.restart_device(0)`. What was in device memory is lost. If that does not help, start
    the process again.
    """


_BY_NAME: Final[dict[str, type[AclError]]] = {
    "ACL_ERROR_BAD_ALLOC": AclOutOfMemoryError,
    "ACL_ERROR_STORAGE_OVER_LIMIT": AclOutOfMemoryError,
    "ACL_ERROR_RT_MEMORY_ALLOCATION": AclOutOfMemoryError,
    "ACL_ERROR_RT_DEVICE_OOM": AclOutOfMemoryError,
    "ACL_ERROR_GE_MEMORY_ALLOCATION": AclOutOfMemoryError,
    "ACL_ERROR_API_NOT_SUPPORT": AclUnsupportedError,
    "ACL_ERROR_FEATURE_UNSUPPORTED": AclUnsupportedError,
    "ACL_ERROR_RT_FEATURE_NOT_SUPPORT": AclUnsupportedError,
    "ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT": AclUnsupportedError,
    "ACL_ERROR_RT_WAIT_TIMEOUT": AclTimeoutError,
    "ACL_ERROR_RT_TASK_TIMEOUT": AclTimeoutError,
    "ACL_ERROR_RT_REPORT_TIMEOUT": AclTimeoutError,
    "ACL_ERROR_RT_STREAM_SYNC_TIMEOUT": AclTimeoutError,
    "ACL_ERROR_RT_EVENT_SYNC_TIMEOUT": AclTimeoutError,
    "ACL_ERROR_RT_DEVICE_TASK_ABORT": AclAbortedError,
    "ACL_ERROR_RT_STREAM_ABORT": AclAbortedError,
    "ACLNN_ERR_INNER_FIND_KERNEL_ERROR": AclUnsupportedError,
    "ACLNN_ERR_INNER_OPP_KERNEL_PKG_NOT_FOUND": AclUnsupportedError,
}


def exception_class(name: str, code: int) -> type[AclError]:
    """The exception for a code: by its name where one is listed, else by its range."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    if 100_000 <= code < 200_000:
        return AclParameterError
    return AclDeviceError if 507_000 <= code < 508_000 else AclError


# Failures after which a device answers everything with the same code until it is reset.
_LASTING: Final = frozenset(
    f"ACL_ERROR_RT_{name}"
    for name in (
        "AICORE_TIMEOUT", "AICORE_EXCEPTION", "AICORE_TRAP_EXCEPTION", "AICPU_TIMEOUT",
        "AICPU_EXCEPTION", "VECTOR_CORE_TIMEOUT", "VECTOR_CORE_EXCEPTION", "LOST_HEARTBEAT",
        "DEVICE_MEM_ERROR", "HBM_MULTI_BIT_ECC_ERROR", "SUSPECT_DEVICE_MEM_ERROR", "LINK_ERROR",
        "SUSPECT_REMOTE_ERROR", "SOCKET_CLOSE",
    )
)  # fmt: skip
_WAY_BACK: Final = (
    "the device has failed this way before and nothing works on it until it is reset: "
    "`cann.close()` does that, in mindtorch `torch.npu.restart_device(0)`, the next use opens it "
    "again, and its memory's contents are lost; "
    "else start the process again. The first time: {first}"
)


class StatusCodes:
    """The codes of one install: number → symbol, and the exception for a failed call.

    `lost` is the first failure of this session that may have broken a device, or None.
    """

    lost: AclError | None = None

    def __init__(
        self,
        declarations: Declarations | None = None,
        custom_library: Callable[[str], str] = lambda _op: "",
    ) -> None:
        """`custom_library`: the library of the custom package that has an operator, "" if none."""
        self._names = _names(declarations) if declarations is not None else {}
        self._custom_library = custom_library
        self._catalog: Mapping[int, str] | None = None

    def name(self, code: int) -> str:
        """The symbol of `code`, such as `ACLNN_ERR_PARAM_INVALID`; empty if nobody declares it."""
        label = self._names.get(code)
        if label is None and code in _CODE_RANGE:
            if self._catalog is None:
                self._catalog = _names(_newest_catalog())
            label = self._catalog.get(code)
        return label or ""

    def names(self) -> Mapping[int, str]:
        """Every code that is known, those of the install first."""
        self.name(_CODE_RANGE.stop - 1)
        return {**(self._catalog or {}), **self._names}

    def error(
        self,
        call: str,
        code: int,
        *,
        message: str = "",
        op: str | None = None,
        shapes: Sequence[Sequence[int]] = (),
        dtypes: Sequence[str] = (),
    ) -> AclError:
        """The exception for `call` returning `code`; an operator's phase is read off the name."""
        name, phase = self.name(code), None
        if call.startswith("aclnn") and call not in ("aclnnInit", "aclnnFinalize"):
            phase = 1 if call.endswith(WORKSPACE_SUFFIX) else 2
            op = op or call.removesuffix(WORKSPACE_SUFFIX)
        library = self._custom_library(op) if op else ""
        again = name in _LASTING and self.lost is not None and self.lost.code == code
        first = str(self.lost).partition("\n")[0]
        error = (AclDeviceLostError if again else exception_class(name, code))(
            call,
            code,
            phase=phase,
            name=name,
            message=message,
            op=op,
            shapes=shapes,
            dtypes=dtypes,
            remedy=_WAY_BACK.format(first=first)
            if again
            else partial(remedy_for, name, op, message, library),
        )
        if name in _LASTING and self.lost is None:
            self.lost = error
        return error


def _names(declarations: Declarations) -> dict[int, str]:
    """number → symbol of every status code declared, the shortest where two share a number."""
    names: dict[int, str] = {}
    tables: list[Mapping[str, int | float | str]] = [declarations.constants]
    tables += [dict(members) for members in declarations.enums.values()]
    for table in tables:
        for name, value in table.items():
            if not isinstance(value, int) or value not in _CODE_RANGE:
                continue
            if _CODE_NAME.match(name) and len(name) < len(names.get(value, "x" * 99)):
                names[value] = name
    return names


def _newest_catalog() -> Declarations:
    from ..interface import catalog

    return catalog.load(catalog.versions()[-1])
