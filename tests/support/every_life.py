"""A log with every kind of life."""

from tests.support.scheduler_double import SchedulerDouble


def every_life(double: SchedulerDouble) -> None:
    """One job of every kind of life, interleaved as on a real log; ids say what becomes of each."""
    for job_id in ("done", "retried", "failed", "timed-out", "lost", "released", "gone"):
        double.submit(job_id, max_retries=2, tags=("red", "blue"), tenant="acme" if job_id == "done" else "")
    double.submit("waits", delay_ms=3_600_000)
    double.submit("moved", delay_ms=3_600_000)
    double.submit("cancelled", delay_ms=3_600_000)
    double.submit("stopped")
    double.submit("runs", name="slow", queue="bulk")
    double.submit("stopping")
    with double.transaction():
        for job_id in (
            "done",
            "retried",
            "failed",
            "timed-out",
            "lost",
            "released",
            "stopped",
            "runs",
            "stopping",
            "gone",
        ):
            double.start(job_id)
    with double.transaction():
        double.fail("retried", retry_in_ms=500)
        double.succeed("done")
        double.succeed("gone", result=None)
    double.fail("failed")
    double.time_out("timed-out")
    double.lose("lost")
    double.release("released")
    double.cancel("cancelled")
    double.cancel("stopped")
    double.cancel("stopping")
    double.reschedule("moved", 7_200_000)
    double.stop("stopped")
    double.report_late("runs")
    double.reject("never-there")
    double.reject("done")
    double.start("retried", "worker-2")
    double.succeed("retried")
    double.start("lost", "worker-2")
    double.succeed("lost")
    double.start("released")
    double.succeed("released")
    double.retry("failed", "failed-again")
    double.evict("gone")
