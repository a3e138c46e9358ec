"""How bytes reach agents: HTTPS, local programs and AWS AgentCore, each within its limits."""
