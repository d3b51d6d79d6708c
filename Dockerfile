# A run as a service. Build it here, and mount a run folder:
#     docker build --tag murp .
#     docker run --publish 8000:8000 --volume "$PWD/runs/first:/run/murp:ro" murp
# With keys: --volume "$PWD/keys.txt:/keys.txt:ro" … murp --keys /keys.txt
# PIP_INDEX_URL names another package index: one with PyTorch's builds for processors makes the image 2 GB smaller.
FROM python:3.11-slim

ARG PIP_INDEX_URL
ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PYTHONUNBUFFERED=1 \
    NUMBA_CACHE_DIR=/var/cache/murp

WORKDIR /app
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
RUN pip install -c constraints.txt . \
    && useradd --uid 1000 --no-create-home murp \
    && mkdir -p /var/cache/murp \
    && chown murp /var/cache/murp

USER 1000
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import murp; murp.Client('http://127.0.0.1:8000').health()"]
ENTRYPOINT ["murp", "serve", "/run/murp", "--host", "0.0.0.0"]
