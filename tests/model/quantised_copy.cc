#include "model/quantised_copy.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "gguf/quantised_file.h"
#include "model/test_model.h"

namespace pagoda::model {
namespace {

Status write_copy(const std::string& from, gguf::TensorType type, const std::string& to) {
  ASSIGN_OR_RETURN(const gguf::File file, gguf::File::open(from));
  ASSIGN_OR_RETURN(const gguf::QuantisationPlan plan, gguf::plan_quantisation(file, type));
  ASSIGN_OR_RETURN(gguf::FileWriter writer, gguf::FileWriter::create(to));
  ThreadPool pool(1);
  RETURN_IF_ERROR(gguf::write_quantised(
      plan, pool, [](std::uint64_t, std::uint64_t) {}, writer));
  ASSIGN_OR_RETURN(const std::string digest, writer.commit());
  static_cast<void>(digest);
  return ok_status();
}

}  // namespace

QuantisedCopy::QuantisedCopy(const std::string& name, gguf::TensorType type)
    : path_((std::filesystem::temp_directory_path() /
             ("pagoda_" + std::to_string(::getpid()) + "_" +
              std::string(gguf::tensor_type_info(type).name) + "_" + name))
                .string()) {
  const Status written = write_copy(test_model_path(name), type, path_);
  if (written.ok()) return;
  std::fprintf(stderr, "%s\n", written.error().message.c_str());
  std::exit(1);
}

QuantisedCopy::~QuantisedCopy() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace pagoda::model
