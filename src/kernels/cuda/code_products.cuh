// Which kernel multiplies codes: a choice of speed alone, all give the same bits.
#pragma once

#include "kernels/cuda/code_stream.cuh"
#include "kernels/cuda/code_tiles.cuh"

namespace pagoda::kernels::cuda {

template <Form kForm>
void multiply_codes(const Product& job, cudaStream_t stream) {
  if (job.rows == 1) return launch_code_stream<kForm, 1>(job, stream);
  if (job.rows <= 8) return launch_code_stream<kForm, 8>(job, stream);
  if (job.rows <= 16) return launch_code_stream<kForm, 16>(job, stream);
  if (job.rows <= 32) return launch_code_tiles<kForm, 1, 4, 32>(job, stream);
  // 128 weight rows by 128 of the batch, unless that leaves most of the chip idle.
  const std::uint32_t blocks = (job.rows + 127) / 128 * ((job.weight.rows + 127) / 128);
  if (job.rows <= 64 || blocks < 100) return launch_code_tiles<kForm, 1, 4, 64>(job, stream);
  launch_code_tiles<kForm, 2, 1, 128>(job, stream);
}

template <Form kForm>
cudaError_t prepare_codes() {
  const auto stream = [](auto kernel, auto shape) {
    return allow_shared(kernel, decltype(shape)::kSharedBytes);
  };
  for (const cudaError_t code :
       {stream(code_stream<kForm, 1>, CodeStream<kForm, 1>{}),
        stream(code_stream<kForm, 8>, CodeStream<kForm, 8>{}),
        stream(code_stream<kForm, 16>, CodeStream<kForm, 16>{}),
        stream(code_tiles<kForm, 1, 4, 32>, CodeTiles<kForm, 1, 4, 32>{}),
        stream(code_tiles<kForm, 1, 4, 64>, CodeTiles<kForm, 1, 4, 64>{}),
        stream(code_tiles<kForm, 2, 1, 128>, CodeTiles<kForm, 2, 1, 128>{})}) {
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

}  // namespace pagoda::kernels::cuda
