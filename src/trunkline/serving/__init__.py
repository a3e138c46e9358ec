"""The HTTP server that every door of ours stands behind; what a door answers with is its own business."""

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
