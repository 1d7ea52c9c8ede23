// The session of this call of the program, for what every verb says of the files that it opens. Null: nothing is said.
#pragma once

namespace stagewright {

class Session;

inline Session* sessionOfCall = nullptr; // set by main(), before the verb runs

} // namespace stagewright
