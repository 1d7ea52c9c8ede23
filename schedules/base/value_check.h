// Checks of a value as it was typed: each gives the end of a sentence ("takes a whole number from 1 to 8, not '9'"), or
// "" where the value is taken.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace stagewright {

using ValueCheck = std::function<std::string(const std::string& text)>;
ValueCheck wholeNumber(std::int64_t least, std::int64_t most);
ValueCheck realNumber(double least, double most);
ValueCheck oneOf(std::vector<std::string> names);

} // namespace stagewright
