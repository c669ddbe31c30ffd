# avtt on a CPU. Name the index of PyTorch's CPU builds (pytorch.org tells it); without it, pip takes
# the default build, which carries CUDA and is gigabytes larger:
#   docker build --build-arg PIP_EXTRA_INDEX_URL=INDEX --build-arg VERSION=X.Y.Z -t adaptive-vtt .
#   docker run --rm -v "$PWD:/work" --user "$(id -u)" adaptive-vtt audit SPEC.toml --out runs/first
FROM python:3.13-slim AS build
ARG PIP_EXTRA_INDEX_URL=""
ARG VERSION="0.1.0"
ENV PATH=/opt/avtt/bin:$PATH PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /source
COPY . .
RUN python -m venv /opt/avtt \
    && SETUPTOOLS_SCM_PRETEND_VERSION="$VERSION" \
       pip install -c constraints.txt '.[http,openai,onnx,parquet]'

FROM python:3.13-slim
COPY --from=build /opt/avtt /opt/avtt
ENV PATH=/opt/avtt/bin:$PATH HOME=/tmp
USER 1000
WORKDIR /work
ENTRYPOINT ["avtt"]
CMD ["--help"]
