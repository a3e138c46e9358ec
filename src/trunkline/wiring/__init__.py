"""
The composition root: settings become objects.

The one package that names a backend.
"""

from trunkline.wiring.store import open_store
from trunkline.wiring.system import Embedded, Seams, open_embedded, run_embedded

__all__ = ["Embedded", "Seams", "open_embedded", "open_store", "run_embedded"]
