// A model of Hugging Face, brought onto this machine by huggingface_hub's own program.
#pragma once

#include "app/model_name.h"
#include "base/result.h"

namespace pagoda::app {

// Runs "hf download" for the model, which talks to the terminal itself, and returns its exit
// status. An error where neither hf nor huggingface-cli is on PATH.
Result<int> download_from_hub(const ModelName& name);

}  // namespace pagoda::app
