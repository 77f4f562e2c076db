// pagoda bench kernels: each operation of a model beside what this machine gives.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "app/kv_dtype.h"
#include "base/byte_size.h"
#include "bench/benchmarks.h"
#include "bench/machine_speed.h"
#include "bench/operation_times.h"
#include "terminal/progress_bar.h"

namespace pagoda::bench {
namespace {

using Json = nlohmann::ordered_json;

// By name.
std::map<std::string, gguf::TensorTypeInfo> readable_types() {
  constexpr std::uint32_t kIdsEnd = 64;  // more than there are
  std::map<std::string, gguf::TensorTypeInfo> types;
  for (std::uint32_t id = 0; id < kIdsEnd; ++id) {
    const std::optional<gguf::TensorTypeInfo> info = gguf::find_tensor_type(id);
    if (info && info->readable) types.emplace(info->name, *info);
  }
  return types;
}

// A matrix of a layer, or the one that makes logits.
struct MatrixShape {
  const char* name;
  gguf::TensorType type;
  std::uint32_t outputs;
  std::uint32_t columns;
  std::uint32_t copies;  // in a model
};

std::vector<MatrixShape> matrices_of(const ModelShape& shape) {
  const std::uint32_t heads_width = shape.heads * shape.head_dim;
  const std::uint32_t kv_width = shape.kv_heads * shape.head_dim;
  const gguf::TensorType type = shape.matrix_type;
  return {{"query", type, heads_width, shape.width, shape.layers},
          {"key, value", type, kv_width, shape.width, 2 * shape.layers},
          {"attention output", type, shape.width, heads_width, shape.layers},
          {"gate, up", type, shape.hidden_width, shape.width, 2 * shape.layers},
          {"down", type, shape.width, shape.hidden_width, shape.layers},
          {"logits", shape.output_type, shape.vocabulary, shape.width, 1}};
}

// With the type asked for; an error when a row is not a whole number of its blocks.
Result<ModelShape> shape_of(const BenchKernelsOptions& options) {
  const std::span<const ModelShape> shapes = model_shapes();
  ModelShape shape = *std::find_if(shapes.begin(), shapes.end(), [&](const ModelShape& candidate) {
    return candidate.name == options.shape;
  });
  if (options.type.empty()) return shape;
  const gguf::TensorTypeInfo type = readable_types().at(options.type);
  shape.matrix_type = type.type;
  shape.output_type = type.type;
  for (const MatrixShape& matrix : matrices_of(shape)) {
    if (matrix.columns % type.block_elements == 0) continue;
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("`type`: {} has blocks of {}, but the matrix {} of {} has {} columns",
                    options.type, type.block_elements, matrix.name, shape.name, matrix.columns)};
  }
  return shape;
}

Json speeds_json(const MachineSpeed& speed) {
  Json reads = Json::array();
  for (const ReadSpeed& read : speed.reads) {
    reads.push_back({{"bytes", read.bytes},
                     {"threads", read.threads},
                     {"gigabytes_per_second", read.gigabytes_per_second}});
  }
  Json multiplies = Json::array();
  for (const MultiplySpeed& multiply : speed.multiplies) {
    multiplies.push_back({{"kind", multiply.kind},
                          {"threads", multiply.threads},
                          {"tera_multiply_adds_per_second", multiply.tera_per_second}});
  }
  return {{"reads", std::move(reads)}, {"multiplies", std::move(multiplies)}};
}

std::string speeds_text(const MachineSpeed& speed) {
  std::string text = "this machine gave";
  for (const ReadSpeed& read : speed.reads) {
    text += fmt::format("\n  {:6.1f} GB/s    {} thread(s) reading {}", read.gigabytes_per_second,
                        read.threads, format_byte_size(static_cast<double>(read.bytes)));
  }
  for (const MultiplySpeed& multiply : speed.multiplies) {
    text += fmt::format("\n  {:6.3f} TMAC/s  {} thread(s) multiplying {}", multiply.tera_per_second,
                        multiply.threads, multiply.kind);
  }
  return text;
}

terminal::BenchReport report_of(const BenchKernelsOptions& options,
                                kv::memory::Elements kv_elements,
                                const std::vector<OperationTime>& times,
                                const std::vector<MachineSpeed>& seen) {
  terminal::BenchReport report("kernels", {{"operation", "operation"},
                                           {"shape", "shape"},
                                           {"rows", "rows"},
                                           {"microseconds", "us", 1},
                                           {"gigabytes_per_second", "GB/s", 2},
                                           {"tera_multiply_adds_per_second", "TMAC/s", 4},
                                           {"bound", "bound by"},
                                           {"share_percent", "% of machine", 1}});
  report.add_setting("shape", options.shape);
  report.add_setting("type", options.type.empty() ? "of the shape" : options.type);
  report.add_setting("threads", options.threads);
  report.add_setting("kv_cache_dtype", app::kv_dtype_name(kv_elements));
  const MachineSpeed best = best_speed(seen);
  for (const OperationTime& time : times) {
    const SpeedLimit limit =
        speed_limit(best, options.threads, time.bytes, time.set_bytes, time.multiply_adds);
    const double tera = static_cast<double>(time.multiply_adds) * 1e-12 / time.seconds;
    report.add_row({time.operation, time.shape, time.rows, time.seconds * 1e6,
                    static_cast<double>(time.bytes) * 1e-9 / time.seconds,
                    time.multiply_adds == 0 ? terminal::ReportValue() : terminal::ReportValue(tera),
                    limit.by_memory ? "memory" : "arithmetic", 100 * limit.seconds / time.seconds});
  }
  report.add_figure("machine_gave", speeds_json(best), speeds_text(best));
  const std::vector<std::string> moved = moved_speeds(seen);
  report.add_detail("moved", moved);
  report.add_figure("valid", moved.empty(),
                    moved.empty()
                        ? fmt::format("valid: the machine's speed stayed within {:.0f} %",
                                      100 * (kSpeedMoveMax - 1))
                        : fmt::format("NOT VALID: the machine's speed changed during the run\n  {}",
                                      fmt::join(moved, "\n  ")));
  return report;
}

}  // namespace

std::vector<std::string> readable_weight_types() {
  std::vector<std::string> names;
  for (const auto& [name, info] : readable_types()) names.push_back(name);
  return names;
}

Result<terminal::BenchReport> bench_kernels(const BenchKernelsOptions& options,
                                            const BenchRun& run) {
  ASSIGN_OR_RETURN(const ModelShape shape, shape_of(options));
  OperationOptions operations = options.operations;
  operations.kv_elements = run.kv_elements();
  ThreadPool pool(options.threads);
  const OperationTimer timer(run.kernels(), pool, run.clock(), operations);
  SpeedProbe probe(options.threads, run.clock());
  std::vector<MachineSpeed> seen = {probe.measure()};
  std::vector<OperationTime> times;

  const std::vector<MatrixShape> matrices = matrices_of(shape);
  terminal::ProgressBar progress("kernels", "measured", run.clock());
  const std::size_t steps = matrices.size() + 2;
  const auto keep = [&](std::vector<OperationTime> more) {
    times.insert(times.end(), more.begin(), more.end());
    seen.push_back(probe.measure());
    progress.show(seen.size() - 1, steps);
    return run.check_interrupt();
  };
  for (const MatrixShape& matrix : matrices) {
    RETURN_IF_ERROR(keep(timer.time_matmul(matrix.name, matrix.type, matrix.outputs, matrix.columns,
                                           matrix.copies)));
  }
  RETURN_IF_ERROR(keep(timer.time_attention(shape)));
  RETURN_IF_ERROR(keep(timer.time_row_operations(shape)));
  return report_of(options, run.kv_elements(), times, seen);
}

}  // namespace pagoda::bench
