#include "schedules/heuristic/building_block.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/base/text.h"

namespace stagewright {

namespace {

struct NamedPass {
    const char* name;
    std::array<int, 2> BlockDevice::*slots;
    int chunk;
};
// In the order of a microbatch's way: down, up, and the weight gradients.
constexpr NamedPass passes[] = {
    {"F0", &BlockDevice::forward, 0},   {"F1", &BlockDevice::forward, 1},    {"I1", &BlockDevice::inputGrad, 1},
    {"I0", &BlockDevice::inputGrad, 0}, {"W1", &BlockDevice::weightGrad, 1}, {"W0", &BlockDevice::weightGrad, 0},
};

int slotOf(const BlockDevice& device, const NamedPass& pass)
{
    return (device.*pass.slots)[static_cast<std::size_t>(pass.chunk)];
}

struct PassNeed {
    int device;
    const NamedPass* pass;
};

// What the pass needs directly: the same pass one device on, the turn, or its own F or I.
std::vector<PassNeed> needsOf(const Block& block, int device, const NamedPass& pass)
{
    const int last = static_cast<int>(block.devices.size()) - 1;
    const NamedPass* const f0 = &passes[0];
    const NamedPass* const f1 = &passes[1];
    const NamedPass* const i1 = &passes[2];
    const NamedPass* const i0 = &passes[3];
    const std::string_view name = pass.name;
    const bool two = block.chunks == 2;
    if (name == "F0") return device == 0 ? std::vector<PassNeed>{} : std::vector<PassNeed>{{device - 1, f0}};
    if (name == "F1") return {device == last ? PassNeed{last, f0} : PassNeed{device + 1, f1}};
    if (name == "I1") return {device == 0 ? PassNeed{0, f1} : PassNeed{device - 1, i1}, {device, f1}};
    if (name == "I0") {
        if (device < last) return {{device + 1, i0}, {device, f0}};
        return {two ? PassNeed{last, i1} : PassNeed{last, f0}, {device, f0}};
    }
    return {{device, pass.chunk == 0 ? i0 : i1}};
}

int modulo(int slot, int interval) { return ((slot % interval) + interval) % interval; }

bool hasWeightGrads(const BlockDevice& device) { return device.weightGrad[0] != notPlaced; }

} // namespace

Result<void> checkBlock(const Block& block)
{
    if (block.chunks != 1 && block.chunks != 2)
        return fail(ErrorCode::Invalid,
                    fmt::format("block {}: {} chunks; 1 and 2 are possible", block.name, block.chunks));
    if (block.devices.empty()) return fail(ErrorCode::Invalid, fmt::format("block {}: has no device", block.name));
    if (block.interval < 3 * block.chunks)
        return fail(ErrorCode::Invalid,
                    fmt::format("block {}: an interval of {} slots for {} passes", block.name, block.interval,
                                3 * block.chunks),
                    fmt::format("the minimum is {}", 3 * block.chunks));
    for (std::size_t d = 0; d < block.devices.size(); ++d) {
        const BlockDevice& device = block.devices[d];
        std::vector<const NamedPass*> taken(static_cast<std::size_t>(block.interval), nullptr);
        for (const NamedPass& pass : passes) {
            if (pass.chunk >= block.chunks) continue;
            const int slot = slotOf(device, pass);
            if (pass.slots == &BlockDevice::weightGrad && slot == notPlaced) {
                if (device.weightGrad[0] != notPlaced || (block.chunks == 2 && device.weightGrad[1] != notPlaced))
                    return fail(
                        ErrorCode::Invalid,
                        fmt::format("block {}, device {}: {} has no slot but another W has", block.name, d, pass.name),
                        "place all W's of a device or none");
                continue;
            }
            if (slot < 0)
                return fail(ErrorCode::Invalid,
                            fmt::format("block {}, device {}: {} has no slot", block.name, d, pass.name));
            const auto residue = static_cast<std::size_t>(modulo(slot, block.interval));
            if (const NamedPass* other = taken[residue])
                return fail(ErrorCode::Invalid,
                            fmt::format("block {}, device {}: {} at {} and {} at {} meet every {} slots", block.name, d,
                                        other->name, slotOf(device, *other), pass.name, slot, block.interval),
                            "move one of them by a slot");
            taken[residue] = &pass;
            for (const PassNeed& need : needsOf(block, static_cast<int>(d), pass)) {
                const int before = slotOf(block.devices[static_cast<std::size_t>(need.device)], *need.pass);
                if (before >= slot)
                    return fail(ErrorCode::Invalid,
                                fmt::format("block {}, device {}: {} at {} needs {} of device {}, which is at {}",
                                            block.name, d, pass.name, slot, need.pass->name, need.device, before));
            }
        }
    }
    return {};
}

Block withWeightGrads(const Block& block)
{
    Block out = block;
    for (BlockDevice& device : out.devices) {
        if (hasWeightGrads(device)) continue;
        std::vector<bool> taken(static_cast<std::size_t>(out.interval), false);
        std::vector<std::pair<int, std::size_t>> waiting; // I's slot, chunk
        for (std::size_t c = 0; c < static_cast<std::size_t>(out.chunks); ++c) {
            taken[static_cast<std::size_t>(modulo(device.forward[c], out.interval))] = true;
            taken[static_cast<std::size_t>(modulo(device.inputGrad[c], out.interval))] = true;
            waiting.emplace_back(device.inputGrad[c], c);
        }
        std::sort(waiting.begin(), waiting.end());
        for (const auto& [after, c] : waiting) {
            int slot = after + 1;
            while (taken[static_cast<std::size_t>(modulo(slot, out.interval))]) ++slot;
            taken[static_cast<std::size_t>(modulo(slot, out.interval))] = true;
            device.weightGrad[c] = slot;
        }
    }
    return out;
}

BlockFigures figuresOf(const Block& block)
{
    const Block full = withWeightGrads(block);
    BlockFigures out;
    for (const BlockDevice& device : full.devices) {
        auto& lifespan = out.lifespan.emplace_back();
        int distance = 0;
        int peak = 0;
        for (std::size_t c = 0; c < static_cast<std::size_t>(full.chunks); ++c) {
            lifespan[c] = device.weightGrad[c] + 1 - device.forward[c];
            distance += device.inputGrad[c] - device.forward[c];
            peak += (lifespan[c] + full.interval - 1) / full.interval;
        }
        out.distance.push_back(distance);
        out.peakBound.push_back(peak);
    }
    return out;
}

Block vMinBlock(int p)
{
    Block out{"v-min", 2, 6, {}};
    const int e = p % 3 == 0 ? 2 : 0;
    for (int i = 0; i < p; ++i)
        out.devices.push_back({{i, 2 * p - 1 - i}, {4 * p + e - 1 - i, 2 * p + e + i}, {notPlaced, notPlaced}});
    return out;
}

Block vHalfBlock(int p, SpareSlot spare)
{
    Block out{"v-half", 2, 6, {}};
    const bool paper = spare == SpareSlot::FirstTurn;
    const int e = p % 2 == 0 ? 3 : 0;
    const int g = p % 2 == 0 ? 4 : 1;
    for (int i = 0; i < p; ++i) {
        if (paper)
            out.devices.push_back(
                {{2 * i, 3 * p - 1 - i}, {6 * p - 3 + g - i, 3 * p - 1 + g + 2 * i}, {notPlaced, notPlaced}});
        else
            out.devices.push_back(
                {{2 * i, 3 * p - 2 - i}, {6 * p + e - 2 - i, 3 * p + e + 2 * i - 1}, {notPlaced, notPlaced}});
    }
    return out;
}

Block vZbBlock(int p)
{
    Block out{"v-zb", 2, 6, {}};
    const int turn = 6 * (p - 1);
    for (int i = 0; i < p; ++i) {
        const int i1 = turn + 2 + 4 * i;
        const int i0 = 2 * turn + 3 - 2 * i;
        out.devices.push_back({{4 * i, turn + 1 - 2 * i}, {i0, i1}, {i0 + 2, i1 + 2}});
    }
    return out;
}

Block oneForwardOneBackwardBlock(int p)
{
    Block out{"1f1b", 1, 3, {}};
    for (int i = 0; i < p; ++i) { // I − F is 3p−2−3i: one more than a multiple of the interval on every device
        const int inputGrad = p + 2 * (p - 1 - i);
        out.devices.push_back({{i, notPlaced}, {inputGrad, notPlaced}, {inputGrad + 1, notPlaced}});
    }
    return out;
}

Result<Block> blockOf(std::string_view schedule, int devices)
{
    if (devices < 1)
        return fail(ErrorCode::Usage, fmt::format("block {}: {} devices; at least one is needed", schedule, devices));
    const std::string_view name = schedule.substr(0, schedule.find(':'));
    if (name == "v-min") return vMinBlock(devices);
    if (name == "v-half")
        return vHalfBlock(devices, schedule.find("turn=paper") != std::string_view::npos ? SpareSlot::FirstTurn
                                                                                         : SpareSlot::LastTurn);
    if (name == "v-zb") return vZbBlock(devices);
    if (name == "1f1b") return oneForwardOneBackwardBlock(devices);
    return fail(ErrorCode::Usage, fmt::format("{} is not made of a building block", schedule),
                "v-min, v-half, v-zb and 1f1b have one");
}

int searchedBubble(int p, int k)
{
    return std::max(0, 3 * p - 1 - 3 * k + std::max(3 * p, p - 1 + 2 * (1 + (k + 1) / 2)));
}

std::string toText(const Block& block)
{
    std::string out = fmt::format("block {} devices={} chunks={} interval={}\n", block.name, block.devices.size(),
                                  block.chunks, block.interval);
    for (std::size_t d = 0; d < block.devices.size(); ++d) {
        out += fmt::format("{}:", d);
        for (const NamedPass& pass : passes)
            if (pass.chunk < block.chunks && slotOf(block.devices[d], pass) != notPlaced)
                out += fmt::format(" {}={}", pass.name, slotOf(block.devices[d], pass));
        out += "\n";
    }
    return out;
}

namespace {

using LineWords = std::vector<std::string_view>; // of a line

bool readWhole(std::string_view text, int& value)
{
    return readNumber(text, value) && value >= 0 && value <= 1'000'000;
}

tl::unexpected<Error> badWord(int line, std::string_view word, std::string_view wanted)
{
    return fail(ErrorCode::Unreadable, fmt::format("block, line {}: '{}' is not {}", line, word, wanted));
}

Result<void> readHeader(const LineWords& words, int number, Block& block, int& devices)
{
    if (words.size() < 2) return badWord(number, "", "a name after 'block'");
    block.name = std::string(words[1]);
    for (std::size_t i = 2; i < words.size(); ++i) {
        const auto [key, text] = keyValueOf(words[i]);
        int value = 0;
        if (!text || !readWhole(*text, value)) return badWord(number, words[i], "of the form devices=4");
        if (key == "devices")
            devices = value;
        else if (key == "chunks")
            block.chunks = value;
        else if (key == "interval")
            block.interval = value;
        else
            return badWord(number, key, "devices, chunks or interval");
    }
    return {};
}

Result<void> readDevice(const LineWords& words, int number, const Block& block, BlockDevice& device)
{
    for (std::size_t i = 1; i < words.size(); ++i) {
        const std::string_view word = words[i];
        int value = 0;
        const NamedPass* known = nullptr;
        for (const NamedPass& pass : passes)
            if (word.substr(0, 2) == pass.name && pass.chunk < block.chunks) known = &pass;
        if (!known || word.size() < 4 || word[2] != '=' || !readWhole(word.substr(3), value))
            return badWord(number, word,
                           block.chunks == 2 ? "F0, F1, I1, I0, W1 or W0 with a slot, such as F0=4"
                                             : "F0, I0 or W0 with a slot, such as F0=4");
        int& slot = (device.*known->slots)[static_cast<std::size_t>(known->chunk)];
        if (slot != notPlaced)
            return fail(ErrorCode::Unreadable, fmt::format("block, line {}: {} appears twice, at {} and {}", number,
                                                           known->name, slot, value));
        slot = value;
    }
    return {};
}

} // namespace

Result<Block> parseBlock(std::string_view text)
{
    Block block;
    int devices = -1;
    bool begun = false;
    int number = 0;
    for (const std::string_view line : split(text, "\n")) {
        ++number;
        const LineWords words = wordsOf(line);
        if (words.empty() || words.front().front() == '#') continue;
        const std::string_view first = words.front();
        if (!begun) {
            if (first != "block") return badWord(number, first, "'block', which starts a block");
            STAGEWRIGHT_CHECK(readHeader(words, number, block, devices));
            begun = true;
            continue;
        }
        int index = 0;
        if (first.back() != ':' || !readWhole(first.substr(0, first.size() - 1), index) ||
            index != static_cast<int>(block.devices.size()))
            return badWord(number, first, fmt::format("'{}:', the next device", block.devices.size()));
        BlockDevice device;
        STAGEWRIGHT_CHECK(readDevice(words, number, block, device));
        block.devices.push_back(device);
    }
    if (!begun)
        return fail(ErrorCode::Unreadable, "block: the text is empty", "start with 'block NAME devices=4 interval=6'");
    if (devices >= 0 && devices != static_cast<int>(block.devices.size()))
        return fail(ErrorCode::Unreadable,
                    fmt::format("block {}: {} devices announced, {} given", block.name, devices, block.devices.size()));
    return block;
}

} // namespace stagewright
