# Every version that Troupe is built and tested with, in one place. Sourced by the other scripts.

# Debian 12 / Ubuntu 24.04 packages (the distribution pins their versions).
TROUPE_APT_BUILD="build-essential cmake ninja-build ccache git ca-certificates python3 python3-venv python3-dev
  libgrpc++-dev protobuf-compiler protobuf-compiler-grpc libprotobuf-dev libspdlog-dev libyaml-cpp-dev nlohmann-json3-dev
  libcli11-dev libsqlite3-dev libpcre2-dev libjpeg62-turbo-dev libpng-dev libwebp-dev libgif-dev libtiff-dev libicu-dev libxxhash-dev libssl-dev libarchive-dev
  libavformat-dev libavcodec-dev libswscale-dev libavutil-dev libucx-dev libgloo-dev"
TROUPE_APT_TESTS="catch2"
# Ubuntu names one package differently.
TROUPE_APT_UBUNTU_RENAMES="libjpeg62-turbo-dev=libjpeg-turbo8-dev"

# LibTorch is taken from the torch wheel; a CPU build needs these three and nothing else.
TROUPE_TORCH="torch==2.11.0"
TROUPE_LIBTORCH_WHEELS="torch==2.11.0 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85"

# Arrow's C++ library and headers are taken from the pyarrow wheel; Parquet files are read with it. Of later wheels libarrow exports a
# protobuf and an abseil of its own.
TROUPE_ARROW_WHEEL="pyarrow==23.0.1"

# Benches that compare with other systems; in an environment of their own (.deps/benches).
TROUPE_BENCH_WHEELS="ray==2.60.0 datasets==5.2.0"

# The tests compare against these (the parity label runs transformers live).
TROUPE_TEST_WHEELS="torch==2.11.0 torchvision==0.26.0 transformers==5.24.0 safetensors==0.8.0 tokenizers==0.23.3
  pillow==13.0.0 numpy==2.4.6 av==18.1.0"
