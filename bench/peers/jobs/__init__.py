"""
The job in each of the other systems, as a worker that takes its orders on stdin.

They run in the peers' own virtual environment, so they import nothing of Trunkline.
"""
