"""Owns the rows whose native kernels win over numpy's, by dtype: the least and the
greatest number of elements, 0 where there is none. Written by
`python benchmarks/native.py --write`.

It holds beside the other table where numpy has no vectors of 64 bytes.
"""

_WINDOWS: dict[str, dict[tuple[int, int], str]] = {
    "cosh": {(64, 0): "float32", (4, 131072): "float64"},
    "exp2": {(512, 0): "float32 float64"},
    "expm1": {(64, 0): "float32", (4, 131072): "float64"},
    "log10": {(512, 0): "float32"},
    "log1p": {(64, 0): "float32", (4, 131072): "float64"},
    "log2": {(512, 0): "float32"},
    "sinh": {(64, 0): "float32", (4, 131072): "float64"},
}
FASTER_WITHOUT_WIDE_VECTORS = {
    row: {dtype: sizes for sizes, dtypes in windows.items() for dtype in dtypes.split()}
    for row, windows in _WINDOWS.items()
}
