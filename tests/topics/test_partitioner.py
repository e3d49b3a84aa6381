"""The same key lands on the same partition whoever produces it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.topics import partition_for

# What org.apache.kafka.common.utils.Utils.murmur2 gives, as signed 32-bit integers (from Kafka's own UtilsTest).
JAVA_VALUES = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


def murmur2(data: bytes) -> int:
    """MurmurHash2 as Java's clients compute it, written out: the oracle of the native one."""
    mix, mask = 0x5BD1E995, 0xFFFFFFFF
    state = 0x9747B28C ^ len(data)
    for start in range(0, len(data) & ~3, 4):
        word = int.from_bytes(data[start : start + 4], "little") * mix & mask
        word ^= word >> 24
        state = (state * mix & mask) ^ (word * mix & mask)
    tail = data[len(data) & ~3 :]
    if tail:
        state = (state ^ int.from_bytes(tail, "little")) * mix & mask
    state = (state ^ state >> 13) * mix & mask
    return state ^ state >> 15


@pytest.mark.parametrize(("key", "value"), JAVA_VALUES.items())
def test_known_values_of_javas_hash_choose_the_partition(key: bytes, value: int) -> None:
    assert murmur2(key) == value & 0xFFFFFFFF
    for partitions in (1, 4, 12, 1000):
        assert partition_for(key, partitions) == (value & 0x7FFFFFFF) % partitions


@given(key=st.binary(max_size=300), partitions=st.integers(1, 10_000))
def test_any_key_lands_where_the_written_out_hash_says(key: bytes, partitions: int) -> None:
    assert partition_for(key, partitions) == (murmur2(key) & 0x7FFFFFFF) % partitions


def test_ids_of_a_common_form_spread_evenly() -> None:
    counts = [0] * 12
    for number in range(12_000):
        counts[partition_for(f"job-{number:08d}".encode(), 12)] += 1

    assert min(counts) > 800
    assert max(counts) < 1200
