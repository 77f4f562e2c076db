// Ctrl-C as a question: while an Interrupt lives, SIGINT sets a flag instead of ending the
// process; a second SIGINT ends it at once.
#pragma once

namespace pagoda::terminal {

class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool requested() const;
};

}  // namespace pagoda::terminal
