// Ops of a rank's list are indices from 0 inside and in JSON (`position`); people count them from 1, as steps: every text
// and window.
#pragma once

#include <concepts>

namespace stagewright {

template <std::integral Index>
constexpr Index opNumber(Index position)
{
    return position + 1;
}

} // namespace stagewright
