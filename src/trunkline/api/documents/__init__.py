"""The OpenAPI and AsyncAPI documents, built from the operations, the resources and the messages."""
