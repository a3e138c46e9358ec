"""The text of a workflow definition: parsing YAML and JSON within limits, locating values, and writing YAML."""
