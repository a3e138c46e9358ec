"""
Whom a zone has turned away, for its operator: what the caller is not told stands here.

Read from the zone's file, also while the zone runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trunkline.stores.zones import RefusedCall
from trunkline.stores.zones.refusals import read_refusals
from trunkline.zones.zone import zone_file

# By the reason in a refusal: what it means, and what to do if the caller was right.
REASONS = {
    "no_credentials": "it has shown neither a token nor a certificate",
    "token_malformed": "its token is none, or has a header that is not taken",
    "token_algorithm": "its token is signed with an algorithm that is not taken: use EdDSA or ES256",
    "token_issuer": "its token is of nobody with keys in the policy",
    "token_signature": "its token is signed with no key that the policy has for this caller",
    "token_audience": "its token is for another zone, or for more than one",
    "token_subject": "its token is about somebody else than who signed it",
    "token_expired": "its token has expired; compare the clocks",
    "token_not_yet_valid": "its token is of the future; compare the clocks",
    "token_too_long_lived": "its token lives longer than 5 minutes",
    "token_body": "its token is for another request",
    "token_used": "its token has been used before",
    "certificate_unknown": "its certificate has no name that the policy knows",
    "certificate_ambiguous": "its certificate has the names of two callers",
    "certificate_of_another": "its token and its certificate are of two callers",
    "caller_not_allowed": "the policy does not name this caller",
    "method_not_allowed": "the policy does not allow it this method",
    "profile_not_allowed": "its params fit no profile that the policy allows it",
    "too_large": "its request is larger than the policy allows",
    "too_fast": "it calls more often than the policy allows",
}


def newest_refusals(folder: Path, limit: int) -> Sequence[RefusedCall]:
    """The newest first; raises `ConfigurationError` where there is no zone's file."""
    return read_refusals(zone_file(folder), limit)


def explain_reason(reason: str) -> str:
    return REASONS.get(reason, reason)
