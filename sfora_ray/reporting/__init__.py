"""The report of a pack: one self-contained HTML page, the same as Markdown, and the figures as files."""

from sfora_ray.reporting.report import ReportPaths, write_report

__all__ = ["ReportPaths", "write_report"]
