"""A real Apache Kafka on this machine, with nothing installed but Python."""
