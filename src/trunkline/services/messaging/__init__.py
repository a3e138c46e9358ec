"""Messages between the store and a broker: relay, deliveries, start commands, orphan messages, dead letters."""
