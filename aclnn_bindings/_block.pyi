class Block:
    """Device memory, given back in stream order when the object dies; see launch/block.c."""

    address: int
    nbytes: int
    session: int
    def __init__(self, address: int, nbytes: int, session: int, /) -> None: ...

def set_release(address: int, /) -> None: ...
