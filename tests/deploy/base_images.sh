#!/usr/bin/env bash
# Make the base images of Dockerfile and docker-compose.yml on a machine that reaches no image registry, from Debian's
# packages and the Kafka of `mainspring local`. What they are called is real, what is in them only does the same:
#
#   apt-get install docker.io docker-compose debootstrap
#   dockerd --data-root /tmp/engine/data --exec-root /tmp/engine/exec -H unix:///tmp/engine/sock --pidfile /tmp/engine/pid &
#   export DOCKER_HOST=unix:///tmp/engine/sock
#   tests/deploy/base_images.sh && make test TESTS=tests/deploy WORKERS=0
#   kill "$(cat /tmp/engine/pid)"
#
# Needs root (debootstrap), a Docker engine, and .venv.
set -euo pipefail
cd "$(dirname "$0")/../.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

echo "python:3.11-slim, from Debian 12" >&2
debootstrap --variant=minbase --include=bash,ca-certificates,python3,python3-venv bookworm "$scratch/root" >/dev/null
ln -s /usr/bin/python3 "$scratch/root/usr/local/bin/python"
# Whatever authorities this machine trusts, for pip inside the build.
cp /etc/ssl/certs/ca-certificates.crt "$scratch/root/etc/ssl/certs/"
printf '[global]\ncert = /etc/ssl/certs/ca-certificates.crt\n' >"$scratch/root/etc/pip.conf"
tar -C "$scratch/root" -c . | docker import - python:3.11-slim >/dev/null

echo "apache/kafka:4.3.1, from the jars of mainspring.local" >&2
mkdir "$scratch/kafka"
.venv/bin/python - "$scratch/kafka" <<'PYTHON'
import shutil, sys
from mainspring.local.runtime import prepare
runtime = prepare(notify=lambda text: print(text, file=sys.stderr))
shutil.copytree(runtime.jars, f"{sys.argv[1]}/jars")
shutil.copytree(runtime.java.parent.parent, f"{sys.argv[1]}/java")
PYTHON
cd "$scratch/kafka"
# As the real image: KAFKA_… variables become server.properties by Kafka's own wrapper, which also formats the storage.
cat >run <<'RUN'
#!/bin/bash
set -e
export CLUSTER_ID=${CLUSTER_ID:-5L6g3nShT-eMCtK--X86sw}
java=(/opt/java/bin/java $KAFKA_HEAP_OPTS -cp '/opt/kafka/libs/*')
"${java[@]}" kafka.docker.KafkaDockerWrapper setup --default-configs-dir /etc/kafka/docker \
  --mounted-configs-dir /mnt/shared/config --final-configs-dir /opt/kafka/config
exec "${java[@]}" kafka.Kafka /opt/kafka/config/server.properties
RUN
cat >log4j2.yaml <<'YAML'
Configuration:
  Properties: {Property: []}
  Appenders: {Console: {name: STDOUT}}
  Loggers: {Root: {level: INFO, AppenderRef: [{ref: STDOUT}]}, Logger: []}
YAML
cp log4j2.yaml tools-log4j2.yaml
echo node.id=1 >server.properties
cat >Dockerfile <<'DOCKERFILE'
FROM python:3.11-slim
COPY jars /opt/kafka/libs
COPY java /opt/java
COPY log4j2.yaml tools-log4j2.yaml server.properties run /etc/kafka/docker/
RUN useradd --create-home appuser \
    && mkdir -p /var/lib/kafka/data /mnt/shared/config /opt/kafka/config /etc/kafka/secrets \
    && chown -R appuser /var/lib/kafka /opt/kafka/config /etc/kafka /mnt/shared
USER appuser
VOLUME ["/etc/kafka/secrets", "/var/lib/kafka/data", "/mnt/shared/config"]
CMD ["bash", "/etc/kafka/docker/run"]
DOCKERFILE
docker build --quiet --tag apache/kafka:4.3.1 . >/dev/null
docker image ls --format '{{.Repository}}:{{.Tag}}' | grep -E '^(python:3.11-slim|apache/kafka:4.3.1)$'
