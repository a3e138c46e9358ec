"""What can go wrong with a service of this machine."""

from __future__ import annotations


class ServiceMissing(Exception):
    """A program that the service needs is not installed; the message says which, and how to get it."""


class ServiceFailed(Exception):
    """The service did not do as it was told; the message ends with what its log says."""
