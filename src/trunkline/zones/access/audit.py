"""
The calls that a zone has rejected, for its operator, with the details that the caller does not get.

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
    "no_credentials": "the request has neither a token nor a certificate",
    "token_malformed": "the token is not valid, or its header is not supported",
    "token_algorithm": "the token is signed with an unsupported algorithm: use EdDSA or ES256",
    "token_issuer": "the policy has no keys for the issuer of the token",
    "token_signature": "the token is not signed with a key that the policy has for this caller",
    "token_audience": "the token is for another zone, or for more than one",
    "token_subject": "the subject of the token is not its issuer",
    "token_expired": "the token has expired; compare the clocks",
    "token_not_yet_valid": "the token is not valid yet; compare the clocks",
    "token_too_long_lived": "the token is valid for longer than 5 minutes",
    "token_body": "the token is for another request",
    "token_used": "the token has been used before",
    "certificate_unknown": "the policy knows no name in the certificate",
    "certificate_ambiguous": "the certificate has the names of two callers",
    "certificate_of_another": "the token and the certificate belong to two callers",
    "caller_not_allowed": "the policy does not name this caller",
    "method_not_allowed": "the policy does not allow this caller to call the method",
    "profile_not_allowed": "the params match no profile that the policy allows",
    "too_large": "the request is larger than the policy allows",
    "too_fast": "the caller exceeds the rate that the policy allows",
}


def newest_refusals(folder: Path, limit: int) -> Sequence[RefusedCall]:
    """The newest first; raises `ConfigurationError` if the zone's file does not exist."""
    return read_refusals(zone_file(folder), limit)


def explain_reason(reason: str) -> str:
    return REASONS.get(reason, reason)
