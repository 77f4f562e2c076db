// Describes the machine that a figure was measured on: a number is a claim only with its machine.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pagoda::terminal {

struct BenchMachine {
  std::string cpu;
  std::size_t cores = 0;  // that this process may use
  std::string architecture;
  std::string kernels;  // set and version
  std::string build;    // program version, build type, compiler
};

// `kernels`: the set that computes and its version.
BenchMachine describe_machine(std::string kernels);

// The processor's name in the words of /proc/cpuinfo; Arm gives numbers there, of which the
// designer's better known cores are spelled out.
std::string cpu_name(std::string_view cpuinfo);

}  // namespace pagoda::terminal
