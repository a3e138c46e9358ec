"""For operators: audit log, system status, process heartbeat, export and import, zone profiles."""
