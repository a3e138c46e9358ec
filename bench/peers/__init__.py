"""
The same job by other systems that keep workflows durable, in turn with ours on the same machine.

Each is used in the way that it recommends, with its own defaults. All run for the whole measurement: what one does
while it waits for work is part of what the others meet.
"""
