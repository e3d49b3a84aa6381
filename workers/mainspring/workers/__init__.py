"""Workers: they claim offers, run handlers and report."""
