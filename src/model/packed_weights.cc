#include "model/packed_weights.h"

#include <algorithm>
#include <vector>

namespace pagoda::model {
namespace {

// Returns the weight matrices that GEMMs use.
std::vector<kernels::WeightMatrix*> matrices_of(Weights& weights) {
  std::vector<kernels::WeightMatrix*> matrices;
  for (LayerWeights& layer : weights.layers) {
    for_each_matrix(layer, [&](kernels::WeightMatrix& matrix) {
      if (matrix.rows > 0) matrices.push_back(&matrix);
    });
  }
  matrices.push_back(&weights.output);
  return matrices;
}

}  // namespace

PackedWeights::PackedWeights(const Weights& weights, const kernels::KernelSet& kernels,
                             ThreadPool& pool, const PackProgress& progress)
    : weights_(weights) {
  const std::vector<kernels::WeightMatrix*> matrices = matrices_of(weights_);
  std::size_t bytes = 0;
  for (const kernels::WeightMatrix* const matrix : matrices) {
    bytes += kernels.packed_bytes(*matrix);
  }
  bytes_.resize(bytes);
  std::size_t done = 0;
  for (kernels::WeightMatrix* const matrix : matrices) {
    const std::size_t size = kernels.packed_bytes(*matrix);
    if (size == 0) continue;
    std::byte* const place = bytes_.data() + done;
    const std::size_t panels = (matrix->rows + kernels::kMatmulPanel - 1) / kernels::kMatmulPanel;
    pool.run(panels, [&](WorkRange range) {
      kernels.pack(*matrix, range.begin * kernels::kMatmulPanel,
                   std::min(range.end * kernels::kMatmulPanel, matrix->rows), place);
    });
    matrix->packed = place;
    done += size;
    if (progress) progress(done, bytes);
  }
}

}  // namespace pagoda::model
