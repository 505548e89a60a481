from typing import Any

class Block:
    """Device memory, given back in stream order when the object dies; see launch/block.c."""

    nbytes: int
    session: int
    def __init__(self, address: int, nbytes: int, session: int, /) -> None: ...
    @property
    def address(self) -> int: ...

class Memory:
    """The base of buffers: where they are; see launch/operator.c."""

    _address: int
    _session: int
    _lane: int
    def _obtain(self, stream: int, nbytes: int, purpose: int, /) -> bool: ...

class View:
    """The base of device tensors: a buffer and a view of it."""

    buffer: Any
    spec: Any

class Operator:
    """The base of operators: a call like an earlier one launches its plan, others go to `_call`."""

    _names: tuple[str, ...]
    _repeated: dict[bytes, tuple[Any, int, Any]] | None
    def __call__(self, /, *args: Any, stream: Any = None, **kwargs: Any) -> Any: ...
    def _key(self, /, *values: Any) -> tuple[bytes, int] | None: ...

def operands(view: type[View], memory: type[Memory], stream: type, /) -> None: ...
def vary_lanes() -> None: ...
def connect(
    release: int, launch: int, all: int, alloc: int, session: int, closed: type[Exception], /
) -> int: ...
def taken() -> BaseException | None: ...
def allocate(stream: int, nbytes: int, session: int, /) -> Block | None: ...
def launch(
    plan: int, stream: int, nbytes: int, session: int, /, *blocks: Block | None
) -> Block | None: ...
def launch_many(
    plan: int, stream: int, nbytes: tuple[int, ...], session: int, /, *blocks: Block | None
) -> tuple[Block, ...] | None: ...
def launch_into(plan: int, stream: int, /, *blocks: Block | None) -> bool: ...
