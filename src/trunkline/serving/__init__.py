"""The HTTP server that every door of ours stands behind; what a door answers with is its own business."""

from trunkline.serving.connection import Connection
from trunkline.serving.process import calm_collector, stop_signal
from trunkline.serving.server import base_url, listen, serving

__all__ = ["Connection", "base_url", "calm_collector", "listen", "serving", "stop_signal"]
