"""The indexes of a partition in an order that has a bounded window in memory and the rest in the local table."""
