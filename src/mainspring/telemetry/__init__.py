"""Metrics, health and structured logs."""

from mainspring.telemetry import metrics
from mainspring.telemetry.health import Health, Probe, Report
from mainspring.telemetry.logs import configure_logging, get_logger
from mainspring.telemetry.server import TelemetryServer

__all__ = ["Health", "Probe", "Report", "TelemetryServer", "configure_logging", "get_logger", "metrics"]
