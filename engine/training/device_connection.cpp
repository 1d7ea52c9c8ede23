#include "engine/training/device_connection.h"

#include <algorithm>
#include <exception>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "engine/device/device_end.h"
#include "engine/training/message_order.h"
#include "engine/transport/bytes.h"
#include "engine/transport/devices_transport.h"

namespace stagewright {

namespace {

DeviceEnd* endOf(RankRun& rank) { return rank.memory ? rank.memory->end() : nullptr; }

// What this process sends to the others: a failure, or for each rank here the name of its device.
std::vector<std::byte> ownDevices(TrainingState& state)
{
    std::string failure;
    std::vector<std::string> names;
    try {
        for (RankRun& rank : state.ranks)
            if (const DeviceEnd* end = endOf(rank)) names.push_back(end->device());
    } catch (const std::exception& e) {
        failure = e.what();
    }
    ByteWriter bytes;
    bytes.text(failure);
    for (const std::string& name : names) bytes.text(name);
    return bytes.take();
}

// In the first process: what the others said, and what to connect with.
Result<std::vector<std::byte>> newConnection(TrainingState& state, const RanksByProcess& where,
                                             const std::vector<std::vector<std::byte>>& said)
{
    const ProcessJob& job = *state.options.job;
    std::map<std::pair<std::string, std::string>, int> rankOf; // by host and device
    for (int process = 0; process < job.count(); ++process) {
        ByteReader bytes(said[static_cast<std::size_t>(process)]);
        if (const std::string failure = bytes.text(); !failure.empty())
            return fail(ErrorCode::Unavailable, fmt::format("{}: {}", job.nameOf(process), failure));
        const std::string& host = job.placeOf(process).host;
        for (int rank = process * where.perProcess; rank < (process + 1) * where.perProcess; ++rank) {
            const auto [other, isNew] = rankOf.try_emplace({host, bytes.text()}, rank);
            if (!isNew)
                return fail(ErrorCode::Usage,
                            fmt::format("NCCL serves one rank per device, but ranks {} and {} have the same one on {}",
                                        other->second, rank, host),
                            "use fewer ranks on this host, or --transport copies");
        }
        if (!bytes.good())
            return fail(ErrorCode::Failed,
                        fmt::format("{}: what it said about its devices is damaged", job.nameOf(process)));
    }
    try {
        return endOf(state.ranks.front())->newConnection();
    } catch (const std::exception& e) {
        return fail(ErrorCode::Unavailable, e.what(), "install NCCL, or use --transport copies");
    }
}

// The first process's answer, in all of them.
Result<std::vector<std::byte>> agreedConnection(TrainingState& state, const RanksByProcess& where)
{
    ProcessJob& job = *state.options.job;
    auto said = job.toFirst(ownDevices(state));
    ByteWriter answer;
    if (job.index() == 0) {
        Result<std::vector<std::byte>> made = said ? newConnection(state, where, *said) : tl::unexpected(said.error());
        answer.put<std::uint8_t>(made ? 1 : 0);
        if (made) {
            answer.list(std::span<const std::byte>(*made));
        } else {
            answer.put(made.error().code);
            answer.text(made.error().message);
            answer.text(made.error().remedy);
        }
    }
    STAGEWRIGHT_TRY(auto agreed, job.fromFirst(answer.take()));
    ByteReader bytes(agreed);
    if (bytes.get<std::uint8_t>() != 0) return bytes.list<std::byte>();
    Error error;
    error.code = bytes.get<ErrorCode>();
    error.message = bytes.text();
    error.remedy = bytes.text();
    return tl::unexpected(std::move(error));
}

} // namespace

bool connectsDevices(const TrainingState& state)
{
    return std::any_of(state.ranks.begin(), state.ranks.end(),
                       [](const RankRun& rank) { return rank.memory && rank.memory->end() != nullptr; });
}

Result<void> connectDevices(TrainingState& state, const RanksByProcess& where, std::unique_ptr<ProcessesTransport> said)
{
    STAGEWRIGHT_TRY(std::vector<std::byte> connection, agreedConnection(state, where));
    std::vector<PostedMessage> messages;
    const std::vector<OrderedMessage> order =
        state.lowered ? messageOrder(state.plan, *state.lowered, state.options.channels.blockingReceives())
                      : messageOrder(state.plan);
    for (const OrderedMessage& message : order) {
        const PartShapes& shapes = state.shapes.ofRank(message.fromRank);
        const std::size_t positions = shapes.regionOf(message.key.slice, message.key.half).positions();
        messages.push_back(
            {message.key, message.fromRank, message.toRank, positions * static_cast<std::size_t>(shapes.width)});
    }
    std::vector<DeviceRank> ranks;
    for (RankRun& rank : state.ranks) ranks.push_back({endOf(rank), rank.allocator.get()});
    state.transport = makeDevicesTransport(std::move(said), ranks, std::move(connection), messages);
    return {};
}

} // namespace stagewright
