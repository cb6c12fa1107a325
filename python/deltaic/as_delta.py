"""`install_as_delta`: programs that import ``delta`` get Deltaic, in this process.

The package ``deltaic-as-delta`` does the same for every process that has it installed.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

from deltaic.exceptions import error

__all__ = ["install_as_delta"]

#: The public names of each module of delta-spark, and the module of Deltaic that has them.
MODULES = {
    "delta": (
        "deltaic",
        ("DeltaTable", "configure_spark_with_delta_pip", "__version__"),
    ),
    "delta.tables": (
        "deltaic.tables",
        (
            "DeltaTable",
            "DeltaMergeBuilder",
            "DeltaTableBuilder",
            "DeltaOptimizeBuilder",
            "IdentityGenerator",
        ),
    ),
    "delta.exceptions": (
        "deltaic.exceptions",
        (
            "DeltaConcurrentModificationException",
            "ConcurrentWriteException",
            "MetadataChangedException",
            "ProtocolChangedException",
            "ConcurrentAppendException",
            "ConcurrentDeleteReadException",
            "ConcurrentDeleteDeleteException",
            "ConcurrentTransactionException",
        ),
    ),
    "delta.pip_utils": ("deltaic.session", ("configure_spark_with_delta_pip",)),
    "delta.version": ("deltaic.version", ("__version__",)),
}


def install_as_delta() -> None:
    """Let ``import delta`` find Deltaic in this process.

    It has the modules ``delta``, ``delta.tables``, ``delta.exceptions``, ``delta.pip_utils`` and
    ``delta.version``, with the public names of delta-spark. Call it before the programs are
    imported that import ``delta``. Calling it again has no effect.

    Raises
    ------
    TableStateError
        If another package named ``delta`` has been imported already.

    Examples
    --------
    >>> install_as_delta()  # doctest: +SKIP
    >>> from delta.tables import DeltaTable  # doctest: +SKIP
    """
    loaded = sys.modules.get("delta")
    if getattr(loaded, "_is_deltaic", False):
        return
    if loaded is not None:
        raise error("DELTAIC_DELTA_IMPORTED", file=getattr(loaded, "__file__", None) or "delta")
    modules = {name: _module(name) for name in MODULES}
    for name, module in modules.items():
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(modules[parent], child, module)
    sys.modules.update(modules)


def _module(name: str) -> ModuleType:
    source, names = MODULES[name]
    ours = import_module(source)
    module = ModuleType(name, f"The names of {source}, under those of delta-spark.")
    module.__dict__.update({each: getattr(ours, each) for each in names})
    module.__dict__.update(__all__=list(names), _is_deltaic=True)
    module.__spec__ = ModuleSpec(name, loader=None, is_package=name == "delta")
    if name == "delta":
        module.__path__ = []
    return module
