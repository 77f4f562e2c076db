#include "kernels/cuda/products.cuh"
#include "kernels/cuda/tile_product.cuh"

namespace pagoda::kernels::cuda {
namespace {

std::uint32_t tiles_each(const Product& job) {
  return (row_tiles(job.weight.rows) + kProcessors - 1) / kProcessors;
}

// The time that all of a product takes with so many row tiles at once, counted in what is copied:
// with many rows of the batch the second-level cache is what is scarce.
std::uint32_t cost(const Product& job, std::uint32_t tiles) {
  const std::uint32_t items =
      (job.rows + 127) / 128 * ((row_tiles(job.weight.rows) + tiles - 1) / tiles);
  return (items + kProcessors - 1) / kProcessors * (tiles + 8);
}

}  // namespace

void bf16(const Product& job, Stream stream) {
  const std::uint32_t each = tiles_each(job);
  if (job.rows <= 8) {
    if (each <= 2) return launch_tiles<8, 2, 4>(job, stream);
    return launch_tiles<8, 4, 2>(job, stream);
  }
  if (job.rows <= 16) {
    if (each <= 2) return launch_tiles<16, 2, 4>(job, stream);
    return launch_tiles<16, 4, 2>(job, stream);
  }
  if (job.rows <= 64) {
    if (each <= 2) return launch_tiles<64, 2, 2>(job, stream);
    if (each <= 4) return launch_tiles<64, 4, 1>(job, stream);
    return launch_tiles<64, 8, 1>(job, stream);
  }
  if (job.rows <= 128) {
    if (each <= 2) return launch_tiles<64, 4, 1>(job, stream);
    if (each <= 4) return launch_tiles<128, 4, 1>(job, stream);
    return launch_tiles<128, 8, 1>(job, stream);
  }
  const std::uint32_t four = cost(job, 4);
  const std::uint32_t eight = cost(job, 8);
  const std::uint32_t sixteen = cost(job, 16);
  if (sixteen <= eight && sixteen <= four) return launch_tiles<128, 16, 1>(job, stream);
  if (eight <= four) return launch_tiles<128, 8, 1>(job, stream);
  launch_tiles<128, 4, 1>(job, stream);
}

template <int kTokens, int kTiles, int kChunks>
cudaError_t prepare_tiles() {
  return allow_shared(tile_product<kTokens, kTiles, kChunks>,
                      TileShape<kTokens, kTiles, kChunks>::kSharedBytes);
}

cudaError_t prepare_bf16() {
  for (const cudaError_t code :
       {prepare_tiles<8, 2, 4>(), prepare_tiles<8, 4, 2>(), prepare_tiles<16, 2, 4>(),
        prepare_tiles<16, 4, 2>(), prepare_tiles<64, 2, 2>(), prepare_tiles<64, 4, 1>(),
        prepare_tiles<64, 8, 1>(), prepare_tiles<128, 4, 1>(), prepare_tiles<128, 8, 1>(),
        prepare_tiles<128, 16, 1>()}) {
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

}  // namespace pagoda::kernels::cuda
