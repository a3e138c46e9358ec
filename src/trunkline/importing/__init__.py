"""
Definitions of other systems, read and written again in ours.

Pure: it is given what files hold, and gives back workflows, agents and an report of everything that was not carried
over. Who reads the files and saves the result is not known here.
"""

from trunkline.importing.report import ImportedDefinitions, ImportedWorkflow, ImportRemark, ImportReport

__all__ = ["ImportRemark", "ImportReport", "ImportedDefinitions", "ImportedWorkflow"]
