// Which kernel multiplies: a choice of speed alone, all give the same bits.
#include "kernels/cuda/products.cuh"

namespace pagoda::kernels::cuda {

// Up to here a product is bound by the reading of weights, of which every row tile is read once.
constexpr std::uint32_t kStreamRowsMax = 16;

void launch_product(const Product& job, Stream stream) {
  switch (job.weight.form) {
    case Form::kBf16:
      if (job.rows > kStreamRowsMax) return tiles_bf16(job, stream);
      return stream_bf16(job, stream);
    case Form::kCodes4:
      return stream_codes4(job, stream);
    case Form::kCodes4Minimum:
      return stream_codes4_minimum(job, stream);
    case Form::kCodes8:
      return stream_codes8(job, stream);
    case Form::kCodes8Short:
      return stream_codes8_short(job, stream);
  }
}

Status prepare_kernels() {
  for (const cudaError_t code :
       {prepare_stream_bf16(), prepare_tiles_bf16(), prepare_stream_codes4(),
        prepare_stream_codes4_minimum(), prepare_stream_codes8(), prepare_stream_codes8_short(),
        prepare_attend()}) {
    if (code == cudaSuccess) continue;
    return Error{ErrorCode::kUnsupported,
                 std::string("GPU: making kernels ready: ") + cudaGetErrorString(code)};
  }
  return ok_status();
}

}  // namespace pagoda::kernels::cuda
