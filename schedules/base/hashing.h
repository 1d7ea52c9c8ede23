// Integer hashing with fixed results on every machine: what weights, samples and jitter are drawn from.
#pragma once

#include <cstdint>
#include <string_view>

namespace stagewright {

// A bijection of 64 bits whose every output bit depends on every input bit (SplitMix64's finaliser: Steele, Lea and
// Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014, figure 17).
constexpr std::uint64_t mixBits(std::uint64_t value)
{
    value += 0x9e3779b97f4a7c15U;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
    return value ^ (value >> 31);
}

// FNV-1a, 64 bits.
constexpr std::uint64_t hashText(std::string_view text)
{
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    return hash;
}

} // namespace stagewright
