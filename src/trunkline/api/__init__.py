"""
The REST interface: routes, problems, event streams.

It holds no state and decides nothing: every call is one question to `trunkline.services`, and every answer is
made of what came back.
"""
