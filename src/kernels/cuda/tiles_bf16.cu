#include "kernels/cuda/products.cuh"
#include "kernels/cuda/tile_product.cuh"

namespace pagoda::kernels::cuda {
namespace {

constexpr std::uint32_t kBusy = 120;  // blocks that keep the chip's 132 processors busy enough

std::uint32_t blocks(const Product& job, std::uint32_t batch, std::uint32_t weight_rows) {
  return (job.rows + batch - 1) / batch * ((job.weight.rows + weight_rows - 1) / weight_rows);
}

}  // namespace

void tiles_bf16(const Product& job, Stream stream) {
  if (job.rows > 128 && blocks(job, 256, 128) >= kBusy) return launch_tiles<256, 2, 2>(job, stream);
  if (job.rows > 64 && blocks(job, 128, 64) >= kBusy) return launch_tiles<128, 1, 1>(job, stream);
  if (blocks(job, 64, 64) >= kBusy) return launch_tiles<64, 1, 1>(job, stream);
  launch_tiles<32, 1, 1>(job, stream);
}

cudaError_t prepare_tiles_bf16() {
  for (const cudaError_t code : {prepare_tiles<256, 2, 2>(), prepare_tiles<128, 1, 1>(),
                                 prepare_tiles<64, 1, 1>(), prepare_tiles<32, 1, 1>()}) {
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

}  // namespace pagoda::kernels::cuda
