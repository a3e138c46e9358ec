"""
The composition root: settings become objects.

The one package that names a backend.
"""

from trunkline.wiring.backends import open_store, read_litecone_database, vault_keys
from trunkline.wiring.interceptors import Interceptors, LivenessTimeouts
from trunkline.wiring.serve import run_roles, run_up
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
