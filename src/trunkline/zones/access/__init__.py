"""Access to a zone: who calls, what each caller may do, and the audit of refused calls."""
