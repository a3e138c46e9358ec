"""Automation, that is, what starts or continues runs without a person: triggers, webhooks and received events."""
