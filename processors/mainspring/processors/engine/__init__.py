"""The transactional runtime: read, decide, write, in one Kafka transaction."""
