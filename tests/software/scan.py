"""Lists every name of torch that installed packages mention, with how many files do.

    python tests/software/scan.py SITE-PACKAGES > tests/software/names.txt

Only names that torch, in the environment that runs this, has; torch's own files are left out.
"""

import ast
import importlib
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

NOT_CLIENTS = ("torch", "functorch", "torchgen", "triton")


def imports(tree: ast.AST) -> tuple[dict[str, str], set[str]]:
    """What local names stand for, and the names that are imported."""
    local, names = {}, set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "torch":
                    local[alias.asname or "torch"] = alias.name if alias.asname else "torch"
                    names.add(alias.name)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch":
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                names.add(str(node.module) if alias.name == "*" else full)
                local[alias.asname or alias.name] = full
    return local, names


def mentions(tree: ast.AST) -> Iterator[str]:
    """Every chain of attributes that starts at torch, at its full length."""
    local, names = imports(tree)
    yield from names
    inner = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or id(node) in inner:
            continue
        parts, at = [], node
        while isinstance(at, ast.Attribute):
            parts.append(at.attr)
            at = at.value  # type: ignore[assignment]
        if isinstance(at, ast.Name) and at.id in local:
            yield ".".join([local[at.id], *parts[::-1]])


def resolves(name: str) -> bool:
    """Whether a dotted name is there, by attributes and imports."""
    value, path = importlib.import_module(name.partition(".")[0]), name.partition(".")[0]
    for part in name.split(".")[1:]:
        path += f".{part}"
        try:
            value = getattr(value, part)
        except Exception:
            try:
                value = importlib.import_module(path)
            except Exception:
                return False
    return True


def main() -> None:
    warnings.simplefilter("ignore")
    counts: Counter[str] = Counter()
    for path in sorted(Path(sys.argv[1]).rglob("*.py")):
        if path.relative_to(sys.argv[1]).parts[0] in NOT_CLIENTS:
            continue
        try:
            counts.update(set(mentions(ast.parse(path.read_text(encoding="utf-8")))))
        except (SyntaxError, ValueError):
            continue
    print("# files names: names of torch that so many files of packages mention, by scan.py")
    known = [(n, c) for n, c in counts.most_common() if n != "torch" and resolves(n)]
    for count, group in groupby(known, key=lambda pair: pair[1]):
        print(count, *(name.removeprefix("torch.") for name, _ in group))


if __name__ == "__main__":
    main()
