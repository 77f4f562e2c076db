#include "server/served_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/api_error.h"

namespace pagoda::server {

void check_model_name(std::string_view name, const ServedModel& model) {
  if (std::find(model.names.begin(), model.names.end(), name) != model.names.end()) return;
  throw ApiError(
      404, fmt::format("model: unknown model \"{}\", this server has \"{}\"", name, model.name()),
      "model", "model_not_found");
}

}  // namespace pagoda::server
