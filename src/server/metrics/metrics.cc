#include "server/metrics/metrics.h"

namespace pagoda::server {

std::string fact_text(const ServedModel& model, std::string_view name) {
  const auto found = model.facts.find(std::string(name));
  if (found == model.facts.end()) return {};
  return found->is_string() ? found->get<std::string>() : found->dump();
}

HttpReply metrics_reply(const ServerState& state, std::string_view accept) {
  const ServedModel& model = state.model();
  const Readings readings = {.state = state,
                             .model = model,
                             .now = model.engine.snapshot(),
                             .distributions = model.engine.distributions(),
                             .tenants = model.engine.tenants()};
  const ExpositionFormat format = wanted_format(accept);
  Exposition page(format);
  page.set_shared_labels({{"model_name", model.name()}, {"engine", "0"}});
  write_vllm_metrics(page, readings);
  write_pagoda_metrics(page, readings);
  write_tier_metrics(page, readings);
  page.set_shared_labels({});
  write_llama_metrics(page, readings);
  write_process_metrics(page);
  return {.content_type = std::string(content_type_of(format)), .body = page.finish()};
}

}  // namespace pagoda::server
