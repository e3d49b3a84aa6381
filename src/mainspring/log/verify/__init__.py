"""`log verify`: does the log keep what the scheduler promises, and do table and view equal its fold?"""

from mainspring.log.verify.audit import verify
from mainspring.log.verify.findings import Check, Finding
from mainspring.log.verify.report import DeadLetterLine, RejectionLine, VerifyProgress, VerifyReport

__all__ = ["Check", "DeadLetterLine", "Finding", "RejectionLine", "VerifyProgress", "VerifyReport", "verify"]
