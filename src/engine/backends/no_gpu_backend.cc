// Implements gpu_backend.h in a build without CUDA.
#include "engine/backends/gpu_backend.h"

namespace pagoda::engine {
namespace {

Error not_built() {
  return {
      ErrorCode::kUnsupported,
      "this program was built without CUDA: it runs on the CPU. With nvcc on PATH, \"make clean "
      "pagoda\" builds it with CUDA"};
}

}  // namespace

Result<std::string> find_gpu() { return not_built(); }
Result<std::uint64_t> find_gpu_bytes() { return not_built(); }

Result<std::unique_ptr<Backend>> create_gpu_backend(const model::Config&, const model::Weights&,
                                                    const kernels::KernelSet&,
                                                    const BackendOptions&,
                                                    const GpuBackendOptions&) {
  return not_built();
}

Result<std::unique_ptr<Backend>> create_gpu_backend(const model::Config&, const RandomWeights&,
                                                    const kernels::KernelSet&,
                                                    const BackendOptions&,
                                                    const GpuBackendOptions&) {
  return not_built();
}

}  // namespace pagoda::engine
