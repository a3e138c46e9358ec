"""
The composition root: settings become objects.

The one package that names a backend. Its modules are imported when one of their names is used: a command that needs
only the store does not load the bridge and the API.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline.wiring.interceptors import Interceptors, LivenessTimeouts
    from trunkline.wiring.serve import run_roles, run_up
    from trunkline.wiring.stores import open_store, read_litecone_database, vault_keys
    from trunkline.wiring.system import ALL_ROLES, Role, System, open_system

__all__ = [
    "ALL_ROLES",
    "Interceptors",
    "LivenessTimeouts",
    "Role",
    "System",
    "open_store",
    "open_system",
    "read_litecone_database",
    "run_roles",
    "run_up",
    "vault_keys",
]

_MODULES = {
    "interceptors": ("Interceptors", "LivenessTimeouts"),
    "serve": ("run_roles", "run_up"),
    "stores": ("open_store", "read_litecone_database", "vault_keys"),
    "system": ("ALL_ROLES", "Role", "System", "open_system"),
}


def __getattr__(name: str) -> object:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
