"""Chooses the signature of a function by who provides it; refuses where the two may not match.

A call with a signature that the library was not built with corrupts memory without a message. So a
custom operator package is called by its own headers only, both phases come from one library, and a
header that contradicts the catalog of its own version is not believed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from ..errors import UntrustedSignatureError
from ..install.describe import Install, LibraryFile
from ..install.library import catalog_version, declarations_with
from ..install.search import bundled_simulator
from ..install.vendors import Vendor
from ..interface import catalog
from ..interface.compare import Types
from ..interface.signature import WORKSPACE_SUFFIX, Declarations, OpSignature, Signature
from ..runtime.symbols import SymbolLookup

TRUST: str = "MINDTORCH_TRUST_HEADERS"


class Signatures:
    """The signatures of one install's operators and functions, checked against their providers."""

    def __init__(
        self, install: Install, symbols: SymbolLookup, declared: Callable[[], Declarations]
    ) -> None:
        self._install, self._symbols, self._declared = install, symbols, declared
        self._of_vendor: dict[Path, Declarations] = {}

    def op(self, signature: OpSignature) -> OpSignature:
        """The operator as its provider declares it; the same where no library exports it.

        UntrustedSignatureError where the declared signature need not be the library's.
        """
        phases = (signature.workspace, signature.execute)
        providers = [self._symbols.provider(phase.name) for phase in phases]
        if None in providers:
            return signature
        first, second = (str(library.path) for library in providers if library is not None)
        if first != second:
            raise UntrustedSignatureError(
                f"{signature.name}: its phases are in two libraries, {first} and {second}; an "
                "executor of one is none of the other's: remove one of them from the search, such "
                "as a damaged custom operator package from ASCEND_CUSTOM_OPP_PATH"
            )
        workspace, execute = (self._checked(phase) for phase in phases)
        return OpSignature(signature.name, workspace, execute)

    def function(self, signature: Signature) -> Signature:
        """One function as its provider declares it; UntrustedSignatureError as for `op`."""
        return self._checked(signature)

    def _checked(self, signature: Signature) -> Signature:
        provider = self._symbols.provider(signature.name)
        if provider is None:
            return signature
        if provider.role == "custom":
            return self._vendors(signature, provider)
        if self._is_vendors(signature):
            raise UntrustedSignatureError(
                f"{_spoken(signature)}: only a custom operator package declares it, in "
                f"{signature.header}, and {provider.path} exports it: install the package's library"
            )
        self._refuse_drift(signature)
        return signature

    def _vendors(self, signature: Signature, provider: LibraryFile) -> Signature:
        """What the package that provides the function declares."""
        vendor = next(v for v in self._install.vendors if v.library == provider.path)
        declared = self._declared_by(vendor).functions.get(signature.name)
        if declared is None or vendor.include is None or not _below(vendor.include, declared):
            raise UntrustedSignatureError(
                f"{_spoken(signature)}: the custom operator package {vendor.name} "
                f"({provider.path}) comes before {self._install.root} and has no header for it, "
                f"so its parameters are unknown: install the package's headers below "
                f"{vendor.root}/op_api/include, or take it out of ASCEND_CUSTOM_OPP_PATH "
                "and vendors/config.ini"
            )
        return declared

    def _declared_by(self, vendor: Vendor) -> Declarations:
        """The package's headers, read with the install's own for the types that they name."""
        if vendor.root not in self._of_vendor:
            self._of_vendor[vendor.root] = declarations_with(self._install, vendor)
        return self._of_vendor[vendor.root]

    def _is_vendors(self, signature: Signature) -> bool:
        """Whether the declaration in use is one of a custom package's headers."""
        includes = [vendor.include for vendor in self._install.vendors if vendor.include]
        folders = [folder for folder in self._install.include_dirs if folder not in includes]
        if not any(_below(folder, signature) for folder in includes):
            return False
        return not any(_below(folder, signature) for folder in folders)

    def _refuse_drift(self, signature: Signature) -> None:
        if self._reference is None or signature.name not in self._reference.functions:
            return
        known = self._reference.functions[signature.name]
        change = self._types.function(known, signature)
        if change is None or change.effect != "breaks ABI" or os.environ.get(TRUST) == "1":
            return
        raise UntrustedSignatureError(
            f"{_spoken(signature)}: {signature.header} differs from what CANN "
            f"{self._install.version} declares ({change.detail}), so headers and "
            "libraries may be of two versions: reinstall the development package of this version, "
            f"or set {TRUST}=1 if this header is the library's own"
        )

    @cached_property
    def _reference(self) -> Declarations | None:
        """The catalog of this install's version; None where its headers are made from that."""
        version = catalog_version(self._install)
        if version is None or not self._install.include_dirs:
            return None
        return None if self._install.root == bundled_simulator() else catalog.load(version)

    @cached_property
    def _types(self) -> Types:
        assert self._reference is not None
        return Types(self._reference, self._declared())


def _spoken(signature: Signature) -> str:
    return signature.name.removesuffix(WORKSPACE_SUFFIX)


def _below(folder: Path, signature: Signature) -> bool:
    return (folder / signature.header).is_file()
