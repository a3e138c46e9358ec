"""
Four small agents and a workflow across them: what `trunkline demo` runs.

Each agent is an example to start from; it needs nothing but the standard library:

    python -m trunkline.cli.demo.simple_a2a_agent --port 8080
"""
