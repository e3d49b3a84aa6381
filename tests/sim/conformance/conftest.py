"""Each case runs on the simulated cluster and on the real broker."""

from collections.abc import Iterator

import pytest

from tests.sim.conformance.cluster import Case, Cluster, RealCluster, SimCluster


@pytest.fixture(params=["simulated", pytest.param("real", marks=pytest.mark.broker)])
def case(request: pytest.FixtureRequest) -> Iterator[Case]:
    """A cluster with fresh topics."""
    cluster: Cluster
    if request.param == "real":
        cluster = RealCluster(request.getfixturevalue("kafka"), request.getfixturevalue("prefix"))
    else:
        cluster = SimCluster(seed=len(request.node.name))
    made = Case(cluster)
    yield made
    made.close()
