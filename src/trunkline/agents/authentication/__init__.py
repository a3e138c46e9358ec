"""How calls authenticate to an agent: its `auth_config`, credentials, certificates, signed tokens."""
