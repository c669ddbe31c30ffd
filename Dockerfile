# avtt on a CPU. To build, name the index of PyTorch's CPU builds (pytorch.org tells it); without
# it, pip takes the default build, which carries CUDA and is gigabytes larger:
#   docker build --build-arg TORCH_INDEX=URL -t adaptive-vtt .
#   docker run --rm -v "$PWD:/work" adaptive-vtt audit SPEC.toml --out runs/first
FROM python:3.13-slim AS build
ARG TORCH_INDEX=""
ARG VERSION="0.1.0"
WORKDIR /source
RUN python -m venv /opt/avtt
ENV PATH=/opt/avtt/bin:$PATH PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
COPY constraints.txt .
RUN if [ -n "$TORCH_INDEX" ]; then pip install --index-url "$TORCH_INDEX" torch==2.13.0; fi
COPY . .
RUN SETUPTOOLS_SCM_PRETEND_VERSION="$VERSION" \
    pip install -c constraints.txt '.[http,openai,onnx,parquet]'

FROM python:3.13-slim
COPY --from=build /opt/avtt /opt/avtt
ENV PATH=/opt/avtt/bin:$PATH OMP_NUM_THREADS=1
RUN useradd --create-home avtt
USER avtt
WORKDIR /work
ENTRYPOINT ["avtt"]
CMD ["--help"]
