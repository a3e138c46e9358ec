"""How results look: tables and text for people, JSON for programs, reports for CI. No module here makes a request."""
