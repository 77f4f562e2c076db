// Which tiles a block of a persistent kernel computes, one after the other.
#pragma once

#include "kernels/cuda/ops.h"

namespace pagoda::kernels::cuda {

// Rows of the batch from tokens * `batch` on, by row tiles [tile, tile + tiles) of weights.
struct WorkTile {
  std::uint32_t batch;
  std::uint32_t tile;
  std::uint32_t tiles;
};

// Where one tile holds the whole batch, row tiles are dealt evenly, so that every processor reads
// as many weights. Otherwise blocks take tiles of kBand batch tiles by all weights in turn, so that
// blocks that run at the same time read the same rows.
template <int kTokens, int kTiles>
class TileScheduler {
  static constexpr std::uint32_t kBand = 8;

 public:
  __device__ __forceinline__ explicit TileScheduler(const Gemm& job)
      : batches_((job.rows + kTokens - 1) / kTokens), row_tiles_(row_tiles(job.weight.rows)) {
    if (batches_ == 1) {
      const std::uint64_t all = row_tiles_;
      first_ = static_cast<std::uint32_t>(all * blockIdx.x / gridDim.x);
      count_ = static_cast<std::uint32_t>(all * (blockIdx.x + 1) / gridDim.x) - first_;
      rounds_ = (count_ + kTiles - 1) / kTiles;
    } else {
      groups_ = (row_tiles_ + kTiles - 1) / kTiles;
      const std::uint32_t all = batches_ * groups_;
      rounds_ = all > blockIdx.x ? (all - blockIdx.x + gridDim.x - 1) / gridDim.x : 0;
    }
  }

  __device__ __forceinline__ std::uint32_t count() const { return rounds_; }

  __device__ __forceinline__ WorkTile operator[](std::uint32_t round) const {
    if (batches_ == 1) {
      const std::uint32_t begin = count_ * round / rounds_;
      return {0, first_ + begin, count_ * (round + 1) / rounds_ - begin};
    }
    const std::uint32_t item = blockIdx.x + round * gridDim.x;
    const std::uint32_t band = item / (kBand * groups_);
    const std::uint32_t width = min(kBand, batches_ - band * kBand);
    const std::uint32_t within = item - band * kBand * groups_;
    const std::uint32_t tile = within / width * kTiles;
    return {band * kBand + within % width, tile, min(std::uint32_t{kTiles}, row_tiles_ - tile)};
  }

 private:
  std::uint32_t batches_;
  std::uint32_t row_tiles_;
  std::uint32_t rounds_;
  std::uint32_t first_ = 0;
  std::uint32_t count_ = 0;
  std::uint32_t groups_ = 0;
};

}  // namespace pagoda::kernels::cuda
