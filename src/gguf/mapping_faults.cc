#include "gguf/mapping_faults.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>

namespace pagoda::gguf {
namespace {

// The signal handler reads the slots. `begin` is written last and cleared first.
struct MappingSlot {
  std::atomic<bool> is_taken = false;
  std::atomic<const std::byte*> begin = nullptr;
  std::atomic<std::size_t> bytes = 0;
  std::atomic<const char*> path = nullptr;
  std::atomic<int> descriptor = -1;
};

constexpr std::size_t kSlots = 1024;
constinit std::array<MappingSlot, kSlots> slots = {};

void say(const char* text) {
  // Nobody can be told that stderr is closed.
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

// Calls nothing but functions that are safe in a signal handler.
[[noreturn]] void end_process(const MappingSlot& slot, std::size_t offset) {
  struct stat state {};
  const bool is_known = fstat(slot.descriptor, &state) == 0;
  const bool is_short = is_known && static_cast<std::uint64_t>(state.st_size) <= offset;
  say("error: ");
  say(slot.path);
  say(is_short
          ? ": the model's file was truncated while it was in use; start again with a whole one\n"
          : ": the model's file cannot be read any more (an I/O error)\n");
  _exit(1);
}

void on_bus_error(int signal, siginfo_t* info, void* /*context*/) {
  const auto* const at = static_cast<const std::byte*>(info->si_addr);
  for (const MappingSlot& slot : slots) {
    const std::byte* const begin = slot.begin.load(std::memory_order_acquire);
    if (begin == nullptr || at < begin || at >= begin + slot.bytes) continue;
    end_process(slot, static_cast<std::size_t>(at - begin));
  }
  // The same access fails again when this returns, and then ends the process.
  std::signal(signal, SIG_DFL);
}

}  // namespace

void report_mapping_faults() {
  struct sigaction action = {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
}

NotedMapping::NotedMapping(std::span<const std::byte> bytes, const char* path, int descriptor)
    : slot_(0) {
  while (slot_ < kSlots && slots[slot_].is_taken.exchange(true)) ++slot_;
  if (slot_ == kSlots) return;
  MappingSlot& slot = slots[slot_];
  slot.bytes = bytes.size();
  slot.path = path;
  slot.descriptor = descriptor;
  slot.begin.store(bytes.data(), std::memory_order_release);
}

NotedMapping::~NotedMapping() {
  if (slot_ == kSlots) return;
  slots[slot_].begin.store(nullptr, std::memory_order_release);
  slots[slot_].is_taken = false;
}

}  // namespace pagoda::gguf
