# One image for every role: `scheduler`, `worker`, `projector`, `topics apply`, and the command line for people.
FROM python:3.11-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
# The codec in C is built with the package; the image that runs has no compiler.
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
RUN python -m venv /opt/mainspring
WORKDIR /build
COPY . .
RUN /opt/mainspring/bin/pip install --constraint constraints.txt ".[scheduler,worker,postgres,registry]"

FROM python:3.11-slim
RUN useradd --system --uid 10001 --no-create-home --home-dir /var/lib/mainspring mainspring \
    && install --directory --owner mainspring --group mainspring /var/lib/mainspring /app
COPY --from=build /opt/mainspring /opt/mainspring
# /app is where jobs of yours are mounted or copied; /var/lib/mainspring holds what may be lost: tables, the view.
ENV PATH=/opt/mainspring/bin:$PATH \
    PYTHONPATH=/app \
    PYTHONUNBUFFERED=1 \
    MAINSPRING_HTTP__HOST=0.0.0.0 \
    MAINSPRING_HTTP__PORT=9464 \
    MAINSPRING_LOG__FORMAT=json \
    MAINSPRING_SCHEDULER__STATE_DIR=/var/lib/mainspring/tables \
    MAINSPRING_VIEW__URL=sqlite:////var/lib/mainspring/view.db
WORKDIR /app
USER 10001:10001
EXPOSE 9464
STOPSIGNAL SIGTERM
ENTRYPOINT ["mainspring"]
CMD ["--help"]
