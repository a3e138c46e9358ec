"""
The resources of the REST interface: each shape is declared once.

What the server answers is a `TypedDict`: it types the JSON that the server encodes and the dictionary that a client
decodes, and OpenAPI's schema is made from it. What a client sends is a `msgspec.Struct`: it is validated when it is
decoded, and OpenAPI's schema is made from it as well.

A class has the name of its schema. Where the domain has a class of that name, the resource's ends in `Resource`, which
the schema leaves out.
"""
