// What gpu_machine.h is in a build without CUDA.
#include "engine/gpu_machine.h"

namespace pagoda::engine {
namespace {

Error not_built() {
  return {ErrorCode::kUnsupported, "this program was built without CUDA: it runs on the CPU"};
}

}  // namespace

Result<std::string> find_gpu() { return not_built(); }

Result<std::unique_ptr<Machine>> create_gpu_machine(const model::Config&, const model::Weights&,
                                                    const kernels::KernelSet&,
                                                    const GpuMachineOptions&) {
  return not_built();
}

Result<std::unique_ptr<Machine>> create_gpu_machine(const model::Config&, const RandomWeights&,
                                                    const kernels::KernelSet&,
                                                    const GpuMachineOptions&) {
  return not_built();
}

}  // namespace pagoda::engine
