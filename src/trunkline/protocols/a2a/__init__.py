"""The versions of A2A: a module or a folder for each, and in `common` what they share."""
