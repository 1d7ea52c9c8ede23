#include "schedules/base/own_names.h"

#include <cstdint>
#include <mutex>
#include <random>

#include "schedules/base/hashing.h"

namespace stagewright {

namespace {

constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::size_t chanceDigits = 8;
constexpr std::size_t checkDigits = 7;

std::string withCheck(std::string name)
{
    std::uint64_t check = mixBits(hashText(name));
    for (std::size_t i = 0; i < checkDigits; ++i, check /= letters.size()) name += letters[check % letters.size()];
    return name;
}

} // namespace

std::string newOwnName(std::string_view beginning)
{
    static std::mutex mutex;
    static std::mt19937_64 random(std::random_device{}());
    const std::lock_guard lock(mutex);
    std::string name(beginning);
    for (std::size_t i = 0; i < chanceDigits; ++i) name += letters[random() % letters.size()];
    return withCheck(std::move(name));
}

bool isOwnName(std::string_view name, std::string_view beginning)
{
    if (name.size() != beginning.size() + chanceDigits + checkDigits || !name.starts_with(beginning)) return false;
    return name == withCheck(std::string(name.substr(0, beginning.size() + chanceDigits)));
}

} // namespace stagewright
