"""The HTTP server that every door of ours stands behind; what a door answers with is its own business."""

from trunkline.serving.connection import Connection
from trunkline.serving.server import base_url, listen, serving, stop_signal

__all__ = ["Connection", "base_url", "listen", "serving", "stop_signal"]
