"""What a bridge does for migrating agents: shadow calls and automatic rollback."""
