"""The shop of the examples works as its README says: its handlers by themselves, and all of it on a real broker."""

import re
import subprocess
import sys
from email import message_from_bytes
from pathlib import Path

import pytest
from examples.shop import app as shop

from mainspring.cli.demo.fleet import Fleet
from mainspring.topics import Connection, Topology, admin

ROOT = Path(shop.__file__).parents[2]
ROLES = {"scheduler": (), "worker": ("--app", "examples.shop.app:app")}
_RESULTS_S = 90


@pytest.fixture
def shop_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SHOP_DIR", str(tmp_path))
    return tmp_path


def test_a_thumbnail_keeps_the_colours_and_the_proportions_of_the_picture(shop_dir: Path) -> None:
    red_over_blue = 4 * 8 * bytes([200, 0, 0]) + 4 * 8 * bytes([0, 0, 100])
    (shop_dir / "flag.ppm").write_bytes(b"P6\n8 8\n255\n" + red_over_blue)

    size = shop.Thumbnail(picture="flag.ppm", width=2).run_sync()

    assert size == (2, 2)
    small = (shop_dir / "flag.small.ppm").read_bytes()
    assert small == b"P6\n2 2\n255\n" + 2 * bytes([200, 0, 0]) + 2 * bytes([0, 0, 100])


@pytest.mark.broker
def test_a_customer_checks_out_as_the_readme_shows(
    kafka: str, prefix: str, shop_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given the processes of an installation, with the jobs of the shop
    admin.apply(Connection(kafka), Topology(prefix=prefix, partitions=2, work_partitions=2))
    settings = {
        "KAFKA__BOOTSTRAP": kafka,
        "TOPICS__PREFIX": prefix,
        "TOPICS__PARTITIONS": "2",
        "TOPICS__WORK_PARTITIONS": "2",
        "VIEW__URL": f"sqlite:///{shop_dir / 'view.db'}",
    }
    for name, value in settings.items():
        monkeypatch.setenv(f"MAINSPRING_{name}", value)
    monkeypatch.chdir(ROOT)
    with Fleet(shop_dir / "logs") as fleet:
        fleet.add({role: (role, [sys.executable, "-m", "mainspring.cli", role, *more]) for role, more in ROLES.items()})
        for role in ROLES:
            fleet.start(role)

        # When a customer checks out
        done = subprocess.run(
            [sys.executable, "-m", "examples.shop.checkout"],
            capture_output=True,
            text=True,
            timeout=_RESULTS_S,
            check=False,
        )

    # Then the results are those of the README, and the receipt is in the outbox
    assert done.returncode == 0, done.stderr
    assert _without_ids(done.stdout) == _without_ids(_readme_output())
    mail = message_from_bytes((shop_dir / "outbox" / "A-1001.eml").read_bytes())
    assert (mail["To"], mail["Subject"]) == ("ada@example.org", "Your order A-1001")
    assert not (shop_dir / "outbox" / "A-1002.eml").exists()


def _readme_output() -> str:
    """What the README says that the checkout prints."""
    readme = Path(shop.__file__).with_name("README.md").read_text(encoding="utf-8")
    shown = re.search(r"checkout .*?\n(receipt.*?)\$", readme, re.DOTALL)
    assert shown is not None
    return shown.group(1)


def _without_ids(text: str) -> str:
    return re.sub(r"<[^@]*@", "<id@", text)
