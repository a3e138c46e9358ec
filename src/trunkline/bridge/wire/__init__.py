"""The wire record of agent calls: exchanges, stream frames, redaction, and a request as a curl command."""
