// A memory plan as a report: what fits, what would make it fit, and the flags to serve it with. The
// numbers come from app/memory_plan.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/memory_plan.h"
#include "base/result.h"
#include "inspect/size_report.h"

namespace pagoda::inspect {

struct PlanQuestion {
  app::MemoryQuery query;
  std::string model;                      // as it was named; empty: a shape
  std::string draft_model;                // of query.draft, as it was named
  std::int64_t context_length = 0;        // that the model was trained on; 0: not known
  std::int64_t context = 8192;            // tokens of a request, output included
  std::optional<std::int64_t> requests;   // that should fit at once
  std::optional<std::int64_t> gpu_bytes;  // all memory of a GPU; nothing: a CPU's
  double gpu_memory_utilization = 1;      // of it
};

// query.chunk_tokens is that of the steps which a server would choose.
Result<SizeReport> plan_report(const PlanQuestion& asked);

}  // namespace pagoda::inspect
