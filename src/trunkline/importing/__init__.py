"""
Definitions of other systems, read and written again in ours.

Pure: it is given what files hold, and gives back workflows, agents and an account of everything that was not carried
over. Who reads the files and saves the result is not known here.
"""

from trunkline.importing.account import Account, Remark
from trunkline.importing.result import Imported, ImportedWorkflow

__all__ = ["Account", "Imported", "ImportedWorkflow", "Remark"]
