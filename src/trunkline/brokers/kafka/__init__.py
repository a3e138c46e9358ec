"""
Kafka, on confluent-kafka's synchronous clients, each in a thread of its own.

    connection   where it is and how to log in
    broker       publishing: into the outbox, in the publisher's transaction
    producer     from the outbox to the topics
    source       from the topics, with offsets that move only when a record is settled
    topics       making and checking the topics
    lag          how far the consumers are behind
    consumer_thread, consumer_health, partitions   the parts of a source
    error_messages   errors for operators
"""

from importlib.util import find_spec

from trunkline.errors import ConfigurationError

if find_spec("confluent_kafka") is None:
    raise ConfigurationError(
        "The broker is Kafka, but confluent-kafka is not installed.",
        fix='pip install "trunkline[kafka]"',
    )

from trunkline.brokers.kafka.broker import RESEND_AFTER, KafkaBroker
from trunkline.brokers.kafka.connection import KafkaConnection
from trunkline.brokers.kafka.consumer_thread import SESSION, BufferCapacity
from trunkline.brokers.kafka.lag import KafkaLag
from trunkline.brokers.kafka.producer import KafkaProducer, open_producer
from trunkline.brokers.kafka.source import KafkaSource, open_source

__all__ = [
    "RESEND_AFTER",
    "SESSION",
    "BufferCapacity",
    "KafkaBroker",
    "KafkaConnection",
    "KafkaLag",
    "KafkaProducer",
    "KafkaSource",
    "open_producer",
    "open_source",
]
