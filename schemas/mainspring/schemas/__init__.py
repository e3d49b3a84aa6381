"""The language: record types, their schemas and the codec."""
