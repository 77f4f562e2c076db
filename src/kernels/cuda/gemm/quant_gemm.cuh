// Which kernel multiplies quantised weights: a choice of speed alone, all give the same bits.
#pragma once

#include "kernels/cuda/gemm/gemm_kernels.cuh"
#include "kernels/cuda/gemm/quant_gemm_stream.cuh"
#include "kernels/cuda/gemm/quant_gemm_wgmma.cuh"

namespace pagoda::kernels::cuda {

template <WeightFormat kFormat>
void quant_gemm(const Gemm& job, StreamHandle stream) {
  if (job.rows == 1) return launch_quant_gemm_stream<kFormat, 1>(job, stream);
  if (job.rows <= 8) return launch_quant_gemm_stream<kFormat, 8>(job, stream);
  if (job.rows <= 16) return launch_quant_gemm_stream<kFormat, 16>(job, stream);
  if (job.rows <= 32) return launch_quant_gemm_wgmma<kFormat, 1, 4, 32>(job, stream);
  // Blocks take 128 weight rows by 128 of the batch, unless that leaves most of the chip idle.
  const std::uint32_t blocks = (job.rows + 127) / 128 * ((job.weight.rows + 127) / 128);
  if (job.rows <= 64 || blocks < 100)
    return launch_quant_gemm_wgmma<kFormat, 1, 4, 64>(job, stream);
  launch_quant_gemm_wgmma<kFormat, 2, 1, 128>(job, stream);
}

// Groups of few rows stream their weights; those of more have tiles of their own.
template <WeightFormat kFormat>
void grouped_quant_gemm(const GroupedGemm& job, StreamHandle stream) {
  if (job.gemm.rows == 1) return launch_grouped_gemm_stream<kFormat, 1>(job, stream);
  if (job.gemm.rows <= 8) return launch_grouped_gemm_stream<kFormat, 8>(job, stream);
  const bool has_small = job.groups != nullptr || job.gemm.rows <= kSmallRows;
  if (has_small) launch_grouped_gemm_stream<kFormat, kSmallRows>(job, stream);
  if (job.gemm.rows > kSmallRows) launch_grouped_gemm_wgmma<kFormat>(job, stream);
}

template <WeightFormat kFormat>
cudaError_t prepare_quant_gemm() {
  const auto stream = [](auto kernel, auto shape) {
    return allow_dynamic_smem(kernel, decltype(shape)::kSharedBytes);
  };
  for (const cudaError_t code :
       {stream(quant_gemm_stream<kFormat, 1>, QuantStreamShape<kFormat, 1>{}),
        stream(quant_gemm_stream<kFormat, 8>, QuantStreamShape<kFormat, 8>{}),
        stream(quant_gemm_stream<kFormat, 16>, QuantStreamShape<kFormat, 16>{}),
        stream(grouped_gemm_stream<kFormat, 1>, QuantStreamShape<kFormat, 1>{}),
        stream(grouped_gemm_stream<kFormat, 8>, QuantStreamShape<kFormat, 8>{}),
        stream(grouped_gemm_stream<kFormat, 16>, QuantStreamShape<kFormat, 16>{}),
        stream(grouped_gemm_wgmma<kFormat>, GroupedWgmmaShape<kFormat>{}),
        stream(quant_gemm_wgmma<kFormat, 1, 4, 32>, QuantWgmmaShape<kFormat, 1, 4, 32>{}),
        stream(quant_gemm_wgmma<kFormat, 1, 4, 64>, QuantWgmmaShape<kFormat, 1, 4, 64>{}),
        stream(quant_gemm_wgmma<kFormat, 2, 1, 128>, QuantWgmmaShape<kFormat, 2, 1, 128>{})}) {
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

}  // namespace pagoda::kernels::cuda
