"""The HTTP server behind every endpoint of Trunkline; each application defines its own error responses."""

from trunkline.serving.connection import HttpConnection
from trunkline.serving.connection_limits import ConnectionLimits
from trunkline.serving.server import base_url, listen, serving, stop_signal, tune_garbage_collector

__all__ = [
    "ConnectionLimits",
    "HttpConnection",
    "base_url",
    "listen",
    "serving",
    "stop_signal",
    "tune_garbage_collector",
]
