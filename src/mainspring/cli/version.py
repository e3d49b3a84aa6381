"""`mainspring version`."""

from mainspring.cli.output import Output, OutputOption, print_json, print_pairs


def version(output: OutputOption = Output.TABLE) -> None:
    """Print the versions of Mainspring and of what it stands on."""
    import platform
    from importlib.metadata import version as installed

    from confluent_kafka import libversion

    from mainspring.schemas.native import IS_BUILT
    from mainspring.telemetry.metrics import package_version

    versions = {
        "mainspring": package_version(),
        "python": platform.python_version(),
        "confluent_kafka": installed("confluent-kafka"),
        "librdkafka": libversion()[0],
        "codec": "C" if IS_BUILT else "Python (no compiler when Mainspring was installed: several times slower)",
    }
    if output is Output.JSON:
        print_json(versions)
    else:
        print_pairs(versions)
