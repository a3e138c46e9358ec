"""
The classes that a broker loads, in a file that the JVM maps into its memory.

    python -m deploy.local.class_archive      writes the file, once

The tests start a broker many times: with the file, it needs a third less CPU until it is ready. Without it, it starts
all the same.
"""

from __future__ import annotations

import sys

from deploy.local.errors import ServiceFailed, ServiceMissing
from deploy.local.folders import service_folder
from deploy.local.kafka import class_archive, start_kafka


def write_class_archive() -> None:
    """Raises `ServiceMissing` or `ServiceFailed`."""
    archive = class_archive()
    if archive.exists():
        return
    sys.stderr.write("Writing the classes of Kafka into an archive (once, 50 MB) ...\n")
    with service_folder("kafka", parent=archive.parent) as folder:
        written = folder / "classes.jsa"
        with start_kafka(folder / "kafka", write_classes=written):
            pass
        if not written.exists():
            raise ServiceFailed("The JVM has not written the classes of Kafka.")
        # It gets its name when it is complete.
        written.rename(archive)


def main() -> int:
    try:
        write_class_archive()
    except (ServiceMissing, ServiceFailed) as failure:
        # Only slower.
        sys.stderr.write(f"{failure}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
