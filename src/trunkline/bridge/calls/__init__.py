"""One agent call and its parts: the session, streams, progress, attachments and the result."""
