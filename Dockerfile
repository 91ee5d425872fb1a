# The server in a container; docs/container.md says how to run it, .ci/image that it is true.
# The first stage builds the wheels from this checkout, the second holds what they need and no more.

FROM python:3.13-slim AS build
WORKDIR /build
COPY requirements-uv.lock ./
RUN pip install --no-cache-dir --require-hashes -r requirements-uv.lock
COPY packages/memorist-minilm packages/memorist-minilm
RUN uv build --no-cache --wheel --out-dir /dist packages/memorist-minilm
COPY requirements.lock ./
RUN uv venv /opt/memorist \
    && uv pip install --no-cache --python /opt/memorist --compile-bytecode --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN uv build --no-cache --wheel --out-dir /dist . \
    && uv pip install --no-cache --python /opt/memorist --compile-bytecode --no-deps /dist/*.whl

FROM python:3.13-slim
RUN useradd --uid 10001 --create-home --home-dir /var/lib/memorist memorist
COPY --from=build /opt/memorist /opt/memorist
USER 10001
ENV PATH=/opt/memorist/bin:$PATH
ENV MEMORIST_URL=/var/lib/memorist/memory.db
VOLUME /var/lib/memorist
EXPOSE 7077
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import urllib.request as http; http.urlopen('http://127.0.0.1:7077/ready', timeout=3)"]
ENTRYPOINT ["memorist"]
CMD ["serve", "--host", "0.0.0.0"]
