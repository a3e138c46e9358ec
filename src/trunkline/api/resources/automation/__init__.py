"""Automation, that is, what starts or continues runs from outside: triggers, webhooks, received events, human tasks."""
