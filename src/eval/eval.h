// pagoda eval: what configurations that trade quality for memory cost in quality, each beside the
// baseline: bf16 keys and values and the full context.
//
// The measurement of a configuration is stored as soon as it is finished (app/verdict_store.h): the
// same command later shows it, and goes on where it was interrupted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/device_choice.h"
#include "app/loaded_model.h"
#include "eval/configuration.h"

namespace pagoda::eval {

struct EvalOptions {
  std::string model = app::default_model_path();
  app::ModelLoadOptions load;
  app::DeviceOptions device;
  std::uint32_t threads = 0;  // 0: usable cores
  std::uint32_t block_size =
      16;  // tokens of a KV block: policies that select pages drop whole ones
  EvalConfiguration baseline;
  std::vector<EvalConfiguration> configurations;  // besides the baseline
  std::string file;                               // empty: the text inside the program
  std::uint32_t depth = 4096;
  std::uint32_t positions = 2000;
  std::uint32_t windows = 40;
  // Reads so many tokens, past the context, and measures nothing else than perplexity by position.
  std::uint64_t beyond = 0;
  bool quick = false;       // the part at depth alone
  double time_limit_s = 0;  // as much of that as can be read in this time; 0: all
  bool fresh = false;       // measures again what is kept
  bool background = false;  // at the lowest priority, and ends with the process that started it
  bool json = false;
  std::string plot;          // an SVG file; empty: none
  std::string command_line;  // for the report
};

// Prints a table or JSON. Returns the exit status: 0, 1 where something failed, 2 where options
// make no sense together, 130 after Ctrl-C.
int eval(const EvalOptions& options);

}  // namespace pagoda::eval
