"""A scheduler that has nothing else to do notices within seconds that its clock was set back."""

from mainspring.schemas import (
    CreateSchedule,
    IntervalRule,
    JobSpec,
    Overlap,
    ScheduleSpec,
    ScheduleTiming,
    SubmitJob,
)
from tests.sim.jobs import KNOWN, Behaviour
from tests.sim.load import LoadShape
from tests.sim.quiet import quiet
from tests.sim.site import Site, SiteShape
from tests.sim.world import SECOND, World

HOUR_MS = 3_600_000


def test_where_nothing_else_happens_a_clock_that_was_set_back_is_noticed_within_ten_seconds() -> None:
    # given a schedule and a delayed job that began on a clock which is ahead by an hour
    world = World(1)
    shape = SiteShape(partitions=1, schedulers=1, workers=1, load=LoadShape(jobs=0, bursts=0))
    site = Site(world, shape)
    (scheduler,) = site.schedulers
    job = JobSpec(job_id="", name=KNOWN, payload=Behaviour(ms=10).payload())
    timing = ScheduleTiming(rules=(IntervalRule(every_ms=300_000),))
    plan = ScheduleSpec(schedule_id="plan", timing=timing, job=job, overlap=Overlap.ALLOW_ALL)
    delayed = JobSpec(job_id="delayed", name=KNOWN, payload=job.payload, delay_ms=60_000)
    with quiet(world):
        site.start()
        world.run(10 * SECOND)
        scheduler.step_clock(HOUR_MS)
        asked_ms = world.true_ms + HOUR_MS
        for key, command in (
            ("plan", CreateSchedule(command_id="1", actor="user", requested_at_ms=asked_ms, spec=plan)),
            ("delayed", SubmitJob(command_id="2", actor="user", requested_at_ms=asked_ms, spec=delayed)),
        ):
            site.load.send(command, key)
        world.run(30 * SECOND)
        assert site.oracle.events == 2

        # when it is set right, and nothing comes to its partition
        scheduler.step_clock(-HOUR_MS)
        world.run(40 * SECOND)
        seen = dict(world.seen)
        for node in site.nodes:
            assert node.process is not None
            node.process.kill()

    # then
    assert seen.get("ScheduleRewound") == 1
    assert seen.get("JobRescheduled the wall clock was set back; a delay goes on") == 1
