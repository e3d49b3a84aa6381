"""The rules of one job: a decider and a fold over one transition table."""
