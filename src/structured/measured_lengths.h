// Finds how many characters may follow each character of a measured text, so that a machine that
// reads one never begins what it cannot end within the bounds.
#pragma once

#include <vector>

#include "structured/program.h"

namespace pagoda::structured {

struct MeasuredCharacter {
  Pc pc = 0;      // its kCharacter
  Pc behind = 0;  // what follows its bytes
};

// `end` is the kMeasured of the text, whose instructions are all those behind it. Gives each
// character its row: its lengths up to the most, or, where there is no most, each number up to the
// least than which as many or more can follow.
void find_lengths(Program& program, Pc end, const CountBounds& bounds,
                  const std::vector<MeasuredCharacter>& characters);

}  // namespace pagoda::structured
