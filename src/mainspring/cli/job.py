"""`mainspring job`: submit, look at and steer jobs."""

import typer

from mainspring.cli import job_explain, job_logs, job_read, job_steer, job_submit, job_watch

app = typer.Typer(help="Submit jobs, look at them, steer them.", no_args_is_help=True)

app.command("submit")(job_submit.submit)
app.command("get")(job_read.get)
app.command("list")(job_read.list_)
app.command("watch")(job_watch.watch)
app.command("explain")(job_explain.explain)
app.command("logs")(job_logs.logs)
app.command("cancel")(job_steer.cancel)
app.command("retry")(job_steer.retry)
app.command("reschedule")(job_steer.reschedule)
