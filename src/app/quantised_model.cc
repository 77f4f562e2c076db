#include "app/quantised_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <set>
#include <utility>
#include <vector>

#include "app/quantised_cache.h"
#include "base/ascii.h"
#include "base/byte_size.h"
#include "base/clock.h"
#include "base/thread_pool.h"
#include "gguf/fingerprint.h"
#include "gguf/quantised_file.h"
#include "gguf/sha256.h"
#include "terminal/messages.h"
#include "terminal/progress_bar.h"

namespace pagoda::app {
namespace {

struct QuantizationName {
  std::string_view name;
  gguf::TensorType type;
};
constexpr auto kQuantizations = std::to_array<QuantizationName>({
    {"q8_0", gguf::TensorType::kQ8_0},
    {"q4_0", gguf::TensorType::kQ4_0},
    {"q4_k", gguf::TensorType::kQ4_K},
});

constexpr auto kDtypes = std::to_array<QuantizationName>({
    {"bfloat16", gguf::TensorType::kBF16},
    {"float16", gguf::TensorType::kF16},
    {"half", gguf::TensorType::kF16},
    {"float32", gguf::TensorType::kF32},
    {"float", gguf::TensorType::kF32},
});

struct RefusedName {
  std::string_view begin;  // of names as vLLM, SGLang and llama.cpp have them
  std::string_view why;
};
constexpr auto kRefused = std::to_array<RefusedName>({
    {"fp8",
     "there are no fp8 kernels yet; use q8_0 (folders in block-scaled fp8 are read as bf16 "
     "without this option)"},
    {"awq", "AWQ needs calibrated weights; use q4_k on the unquantised model, or a GGUF file"},
    {"gptq", "GPTQ needs calibrated weights; use q4_k on the unquantised model, or a GGUF file"},
    {"bitsandbytes", "use q4_k or q8_0 on the unquantised model"},
    {"compressed-tensors", "use q4_k or q8_0 on the unquantised model, or a GGUF file"},
    {"mxfp4", "weights that are MXFP4 are read as they are, without this option; others take q4_k"},
    {"gguf", "a GGUF file is read as it is, without this option"},
    {"q4_k_", "the one mixture that is made is q4_k, with the matrix of the logits in q8_0"},
});

constexpr std::chrono::seconds kQuietTime{1};

// The fingerprint as remembered is enough: KV has the fingerprint of the quantised file. Where all
// bytes are read for it and that takes a while, the user is told.
Result<gguf::Fingerprint> fingerprint_of(const gguf::File& file, const std::string& memory_path) {
  auto found = std::async(std::launch::async, [&] {
    const std::atomic<bool> stop = false;
    return gguf::fingerprint(file.opened_parts(), {.memory_path = memory_path}, stop);
  });
  if (found.wait_for(kQuietTime) == std::future_status::timeout) {
    terminal::print_note(fmt::format("reading {} ({}) to see whether it was made before",
                                     file.path(),
                                     format_byte_size(static_cast<double>(file.bytes()))));
  }
  return found.get();
}

std::string key_of(const gguf::QuantisationPlan& plan, const std::string& fingerprint) {
  gguf::Sha256 hash;
  hash.add(std::as_bytes(std::span(fingerprint)));
  hash.add(std::as_bytes(std::span(plan.head)));
  return hash.finish();
}

// A file that changed while it was read does not have the fingerprint under which it would be kept.
Status check_unchanged(const gguf::File& file) {
  for (const gguf::OpenedPart& part : file.opened_parts()) {
    ASSIGN_OR_RETURN(const gguf::FileState state, gguf::file_state(part.descriptor, part.path));
    if (state == part.state) continue;
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{}: changed while it was read; start again", part.path)};
  }
  return ok_status();
}

// Quantises on all cores, with a bar.
Status write_with_progress(const gguf::QuantisationPlan& plan, bool rounds,
                           const SteadyClock& clock, gguf::FileWriter& writer) {
  ThreadPool pool(usable_cores());
  terminal::ProgressBar bar(rounds ? "rounding weights" : "quantising weights", "bytes", clock);
  return gguf::write_quantised(
      plan, pool, [&](std::uint64_t done, std::uint64_t all) { bar.show(done, all); }, writer);
}

// The model with its matrices in a type, from the cache or written into it. `field` asked for it.
Result<gguf::File> made_model(gguf::File file, const QuantizationOptions& options,
                              gguf::TensorType type, std::string_view field,
                              const std::function<Status(const gguf::File&)>& check) {
  Result<gguf::QuantisationPlan> plan = gguf::plan_quantisation(file, type);
  if (!plan.ok()) {
    return Error{plan.error().code, fmt::format("{}: {}", field, plan.error().message)};
  }
  ASSIGN_OR_RETURN(const gguf::Fingerprint fingerprint,
                   fingerprint_of(file, options.cache_folder + "/fingerprints"));
  QuantisedCache cache(options.cache_folder + "/quantized", options.cache_bytes);
  const bool rounds = gguf::is_float(type);
  const auto write = [&](gguf::FileWriter& writer) -> Status {
    const SteadyClock clock;
    const std::int64_t start_ns = clock.now_ns();
    RETURN_IF_ERROR(write_with_progress(plan.value(), rounds, clock, writer));
    RETURN_IF_ERROR(check_unchanged(file));
    terminal::print_note(fmt::format("{} to {} in {:.1f} s: {}", rounds ? "rounded" : "quantised",
                                     gguf::tensor_type_info(type).name,
                                     seconds_between(start_ns, clock.now_ns()),
                                     format_byte_size(static_cast<double>(plan.value().bytes))));
    return ok_status();
  };
  return cache.open(
      key_of(plan.value(), fingerprint.digest),
      {.bytes = plan.value().bytes, .check = [&] { return check(file); }, .write = write});
}

}  // namespace

Result<gguf::TensorType> parse_quantization(std::string_view word) {
  std::string name;
  for (const char c : word) name += is_ascii_letter(c) ? static_cast<char>(c | 0x20) : c;
  for (const QuantizationName& known : kQuantizations) {
    if (name == known.name) return known.type;
  }
  for (const RefusedName& refused : kRefused) {
    if (!name.starts_with(refused.begin)) continue;
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{} is not supported: {}", word, refused.why)};
  }
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("{} is none of q8_0, q4_0 and q4_k; other types are read from GGUF files", word)};
}

Result<std::optional<gguf::TensorType>> parse_dtype(std::string_view word) {
  if (word == "auto") return std::optional<gguf::TensorType>();
  for (const QuantizationName& known : kDtypes) {
    if (word == known.name) return std::optional(known.type);
  }
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} is none of auto, bfloat16, float16, half, float32 and float", word)};
}

std::string_view dtype_name(gguf::TensorType type) {
  for (const QuantizationName& known : kDtypes) {
    if (type == known.type) return known.name;
  }
  return gguf::tensor_type_info(type).name;
}

Result<gguf::File> quantised_model(gguf::File file, const QuantizationOptions& options,
                                   const std::function<Status(const gguf::File&)>& check) {
  return made_model(std::move(file), options, *options.type, "`quantization`", check);
}

Result<gguf::File> rounded_model(gguf::File file, const QuantizationOptions& options,
                                 const std::function<Status(const gguf::File&)>& check) {
  const std::set<gguf::TensorType> types = gguf::matrix_types(file);
  std::vector<std::string_view> quantised;
  for (const gguf::TensorType type : types) {
    if (!gguf::is_float(type)) quantised.push_back(gguf::tensor_type_info(type).name);
  }
  if (!quantised.empty()) {
    terminal::print_note(fmt::format("`dtype={}`: the weights are quantised ({}) and stay so",
                                     dtype_name(*options.dtype), fmt::join(quantised, ", ")));
    return file;
  }
  if (types == std::set{*options.dtype}) return file;
  return made_model(std::move(file), options, *options.dtype, "`dtype`", check);
}

}  // namespace pagoda::app
