"""Owns the tree of an archive's files, as it is printed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .glob_group import GlobGroup, GlobPattern


class Directory:
    """A folder with its children by name, or a file."""

    def __init__(self, name: str, is_dir: bool):
        self.name, self.is_dir = name, is_dir
        self.children: dict[str, Directory] = {}

    def _add(self, path: str) -> None:
        *folders, file = path.split("/")
        place = self
        for folder in folders:
            place = place.children.setdefault(folder, Directory(folder, True))
        place.children[file] = Directory(file, False)

    def has_file(self, filename: str) -> bool:
        """Whether there is a file, or a folder, of that path."""
        name, slash, rest = filename.partition("/")
        child = self.children.get(name)
        return child is not None and (not slash or child.has_file(rest))

    def _lines(self, indent: str) -> Iterator[str]:
        ordered = sorted(self.children.values(), key=lambda c: (not c.is_dir, c.name))
        for index, child in enumerate(ordered):
            last = index == len(ordered) - 1
            yield f"{indent}{'└' if last else '├'}── {child.name}\n"
            yield from child._lines(indent + ("    " if last else "│   "))

    def __str__(self) -> str:
        return f"─── {self.name}\n" + "".join(self._lines("    "))


def tree_of_files(
    name: str, files: Iterable[str], include: GlobPattern, exclude: GlobPattern
) -> Directory:
    """The tree of those files whose paths match."""
    group = GlobGroup(include, exclude=exclude, separator="/")
    top = Directory(name, True)
    for file in files:
        if group.matches(file):
            top._add(file)
    return top
