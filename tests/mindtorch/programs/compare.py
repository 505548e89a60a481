"""Compares what two runs of a program printed: words exactly, numbers as they are rounded."""

import re

_NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?")
# The same numbers in float32 come out of sums in another order; of sums of sums too.
RELATIVE, ABSOLUTE = 2e-3, 2e-4


def words(text):
    """The text between numbers, without what only a device or an address differs in."""
    text = re.sub(r",\s*device='npu(:0)?'", "", text)
    text = re.sub(r"0x[0-9a-f]+", "0x", text)
    return re.sub(r"\s+", "", _NUMBER.sub("#", text))


def numbers(text):
    """The numbers of a text, in order."""
    text = re.sub(r",\s*device='npu(:0)?'|0x[0-9a-f]+", "", text)
    return [float(n) for n in _NUMBER.findall(text)]


def difference(theirs, ours):
    """The first line in which two texts differ, as (theirs, ours); None where they are equal."""
    if words(theirs) == words(ours):
        pairs = zip(numbers(theirs), numbers(ours), strict=True)
        if all(abs(a - b) <= ABSOLUTE + RELATIVE * abs(a) for a, b in pairs):
            return None
    left, right = theirs.splitlines(), ours.splitlines()
    for a, b in zip(left, right, strict=False):
        if line_differs(a, b):
            return a, b
    return f"{len(left)} lines", f"{len(right)} lines"


def line_differs(a, b):
    """Whether two lines differ in words or numbers."""
    if words(a) != words(b):
        return True
    pairs = zip(numbers(a), numbers(b), strict=True)
    return any(abs(x - y) > ABSOLUTE + RELATIVE * abs(x) for x, y in pairs)
