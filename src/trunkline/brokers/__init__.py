"""Brokers: how messages travel between executor and bridge, one file per backend."""
