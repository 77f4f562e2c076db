// A model's matrices quantised, or rounded to another type of floats, and the model written as a
// GGUF file again.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "gguf/file.h"
#include "gguf/file_writer.h"

namespace pagoda::gguf {

// The tensors and the head that are written for a model. Views into the model's File, which must
// outlive the plan.
struct QuantisationPlan {
  const File* file = nullptr;
  std::vector<Tensor> tensors;  // the file's, in its order; `type` is what they become
  std::string head;             // header of the file that is written
  std::uint64_t bytes = 0;      // size of the whole file
};

// Plans F32, F16 and BF16 matrices to become `type`: Q8_0, Q4_0 or Q4_K. Of a type of 4 bits the
// matrix of the logits (output, or token_embd where that serves as both) becomes Q8_0. So do
// matrices whose rows are not whole blocks of 256; those whose rows are not whole blocks of 32 stay
// as they are, and so do routers, norms, biases and all that is quantised. Or to become F32, F16 or
// BF16, whatever the length of their rows. An error names a model that has nothing to quantise.
Result<QuantisationPlan> plan_quantisation(const File& file, TensorType type);

// The types of the model's matrices: of what plan_quantisation() may change.
std::set<TensorType> matrix_types(const File& file);
bool is_float(TensorType type);

// Appends the whole file. `on_progress` is told the bytes that were written, of all. The bytes do
// not depend on the pool. An error names a tensor whose values cannot be quantised.
Status write_quantised(
    const QuantisationPlan& plan, ThreadPool& pool,
    const std::function<void(std::uint64_t done, std::uint64_t all)>& on_progress,
    FileWriter& writer);

}  // namespace pagoda::gguf
