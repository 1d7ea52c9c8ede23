#include "traces/import/kineto/ascend_devices.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "schedules/base/text.h"
#include "traces/analysis/coverage.h"

namespace stagewright {

namespace {

bool holdsOneOf(std::string_view text, std::initializer_list<std::string_view> words)
{
    return std::any_of(words.begin(), words.end(),
                       [text](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

AscendPart partOfTask(std::string_view type)
{
    const std::string lower = lowered(type);
    if (holdsOneOf(lower, {"wait", "record", "notify", "write value", "write_value", "place_holder", "condition",
                           "data context", "event", "model_", "end_sqe", "profiler"}))
        return AscendPart::Signal;
    if (holdsOneOf(lower, {"communication", "hccl"})) return AscendPart::Piece;
    return holdsOneOf(lower, {"memcpy", "memset", "sdma", "dma_"}) ? AscendPart::Copy : AscendPart::Kernel;
}

constexpr std::array<std::string_view, 6> callLevels{"AscendCL@", "Model@",         "Node@",
                                                     "Runtime@",  "Communication@", "Hccl@"};

bool isOfHost(std::string_view process) { return process == "CANN"; }
bool repeatsTimes(std::string_view process)
{
    return process == "Overlap Analysis" || process == "Ascend Hardware" || process == "Communication" ||
           process == "HCCL";
}

} // namespace

AscendPart AscendDevices::partOf(const KinetoEvent& event)
{
    const KinetoArgs& args = event.args;
    if (!args.taskType.empty()) return partOfTask(args.taskType);
    if (args.ofPlane) return AscendPart::Piece;
    if (event.name.starts_with("hcom_") && !args.algorithm.empty()) return AscendPart::Collective;
    const bool call = event.name.find('@') != std::string_view::npos &&
                      std::any_of(callLevels.begin(), callLevels.end(),
                                  [&](std::string_view level) { return event.name.starts_with(level); });
    return call ? AscendPart::Call : AscendPart::None;
}

void AscendDevices::nameCollective(KinetoEvent& event)
{
    // "hcom_allReduce__459_0_1": the operation, digits of the group's hash, counters of calls.
    const std::size_t end = std::min(event.name.find("__"), event.name.size());
    m_group = event.name.substr(std::min(end + 2, event.name.size()));
    m_group.erase(std::min(m_group.find('_'), m_group.size()));
    m_name = event.name.substr(0, end);
    while (m_name.ends_with('_')) m_name.pop_back();
    event.name = m_name;
    event.nameId = KinetoEvent::unknown;
    event.args.group = m_group;
    event.args.collective = std::string_view(m_name).substr(std::string_view("hcom_").size());
    if (m_name == "hcom_receive") event.args.collective = "recv";
    event.args.elementsIn = event.args.count;
    m_seen = true;
}

void AscendDevices::addCopy(const DeviceSpan& copy, std::int64_t stream, std::int64_t task, Bytes bytes)
{
    m_copies.push_back({copy, stream, task, bytes});
    m_seen = true;
}

void AscendDevices::addPiece(const KinetoEvent& event, Nanos start, Nanos end)
{
    const auto place = [](std::int64_t number) {
        return static_cast<int>(std::clamp<std::int64_t>(number, -1, 1 << 14));
    };
    const std::string name = lowered(event.name);
    const bool waits = holdsOneOf(name, {"wait"});
    m_pieces.push_back({start, end, event.args.stream, event.args.task, place(event.args.sourceRank),
                        place(event.args.targetRank), waits || holdsOneOf(name, {"record", "notify"}), waits});
    m_seen = true;
}

// A message's event doesn't say whom it is from or to, but its pieces do: those that move bytes from rank to rank, or
// the signals to the other rank where that one reads.
void AscendDevices::findPeers(ForeignRank& rank) const
{
    for (ForeignMessage& message : rank.messages) {
        if (message.kind == MessageKind::Collective || !message.device || message.from >= 0 || message.to >= 0)
            continue;
        std::set<std::pair<int, int>> moved, signalled; // from, to
        auto piece = std::lower_bound(m_pieces.begin(), m_pieces.end(), message.start,
                                      [](const Piece& one, Nanos time) { return one.start < time; });
        for (; piece != m_pieces.end() && piece->start < message.end; ++piece)
            if (piece->from >= 0 && piece->to >= 0 && piece->from != piece->to && !piece->waits)
                (piece->signal ? signalled : moved).emplace(piece->from, piece->to);
        const bool sends = message.kind == MessageKind::Send;
        if (moved.size() == 1)
            std::tie(message.from, message.to) = *moved.begin();
        else if (moved.empty() && signalled.size() == 1)
            std::tie(sends ? message.from : message.to, sends ? message.to : message.from) = *signalled.begin();
        else
            continue; // none, or several at that time
        message.inGroup = true;
        rank.placeInGroup.try_emplace(rank.names[message.group], sends ? message.from : message.to);
    }
}

void AscendDevices::noteWaits(ForeignRank& rank) const
{
    Coverage moving, any;
    for (const Piece& piece : m_pieces) {
        if (!piece.signal) moving.add(piece.start, piece.end);
        if (!piece.signal || piece.waits) any.add(piece.start, piece.end);
    }
    Coverage all;
    for (const ForeignMessage& message : rank.messages)
        if (message.device) all.add(message.start, message.end);
    if (const Nanos waiting = any.total() - moving.total(); waiting > 0 && all.total() > 0)
        rank.notes.push_back(
            fmt::format("for {} of the {} of its collectives and messages HCCL's tasks wait for other ranks "
                        "(Notify_Wait) and move nothing",
                        formatDuration(waiting), formatDuration(all.total())));
}

void AscendDevices::addFlow(char phase, std::string_view id, std::uint32_t thread, Nanos time)
{
    if (phase == 's')
        m_from.try_emplace(std::string(id), time, thread);
    else
        m_into.push_back({{thread, time}, std::string(id)});
    m_seen = true;
}

void AscendDevices::finish(TraceThreads& threads, ForeignRank& rank, std::vector<std::int64_t>& external)
{
    const bool named = std::any_of(threads.processes().begin(), threads.processes().end(), [&](const auto& process) {
        return threads.processName(process) == "Ascend Hardware";
    });
    if (!m_seen && !named) return;
    std::sort(m_pieces.begin(), m_pieces.end(), [](const Piece& a, const Piece& b) { return a.start < b.start; });
    findPeers(rank);
    noteWaits(rank);
    keepCopies(rank, external);
    leaveOutRepeats(threads, rank);
    nameThreads(threads, rank);
    tie(threads, rank);
}

void AscendDevices::keepCopies(ForeignRank& rank, std::vector<std::int64_t>& external)
{
    constexpr Nanos rounded = 1000; // some versions print times with fewer digits in one of the lists
    std::vector<std::pair<std::pair<std::int64_t, std::int64_t>, Nanos>> pieces; // stream, task; start
    for (const Piece& piece : m_pieces)
        if (piece.stream >= 0 && piece.task >= 0) pieces.push_back({{piece.stream, piece.task}, piece.start});
    std::sort(pieces.begin(), pieces.end());
    for (const Copy& copy : m_copies) {
        const std::pair place{copy.stream, copy.task};
        const auto piece = std::lower_bound(pieces.begin(), pieces.end(), std::pair(place, copy.span.start - rounded));
        if (piece != pieces.end() && piece->first == place && piece->second <= copy.span.start + rounded) {
            ++rank.leftOut["pieces of collectives"];
            continue;
        }
        if (copy.bytes >= 0) rank.copyBytes.emplace_back(static_cast<std::uint32_t>(rank.device.size()), copy.bytes);
        rank.device.push_back(copy.span);
        external.push_back(-1);
    }
    std::vector<Copy>().swap(m_copies);
    std::vector<Piece>().swap(m_pieces);
}

void AscendDevices::leaveOutRepeats(const TraceThreads& threads, ForeignRank& rank)
{
    std::vector<bool> repeats;
    for (const std::string& process : threads.processes())
        repeats.push_back(repeatsTimes(threads.processName(process)));
    const auto gone = std::erase_if(rank.annotations, [&](const ForeignSpan& span) { return repeats[span.thread]; });
    if (gone > 0) rank.leftOut["spans that repeat the time of others"] += static_cast<std::int64_t>(gone);
}

// Collectives are on rows of their own. A number of a process holds that of its device: host's, order, device.
void AscendDevices::nameThreads(const TraceThreads& threads, ForeignRank& rank)
{
    constexpr std::int64_t deviceBits = 5, orderBits = 5;
    for (std::uint32_t thread = 0; thread < rank.threads.size(); ++thread) {
        const std::string& process = threads.processes()[thread];
        if (!rank.threads[thread].device || !repeatsTimes(threads.processName(process))) continue;
        if (const auto number = wholeNumberOf(process);
            number && *number >= std::int64_t{1} << (deviceBits + orderBits))
            rank.threads[thread].gpu = static_cast<int>(*number & ((1 << deviceBits) - 1));
        const auto names = threads.threadNames(process);
        const auto name = names.find(threads.threads()[thread]);
        if (threads.processName(process) != "Ascend Hardware" && name != names.end())
            rank.threads[thread].name = name->second;
    }
}

void AscendDevices::tie(TraceThreads& threads, ForeignRank& rank)
{
    // The runtime's process lists threads of the framework's.
    const auto isOfRuntime = [&](std::uint32_t thread) {
        return isOfHost(threads.processName(threads.processes()[thread]));
    };
    std::string framework;
    for (std::uint32_t thread = 0; thread < rank.threads.size() && framework.empty(); ++thread)
        if (!rank.threads[thread].device && !isOfRuntime(thread)) framework = threads.processes()[thread];
    for (Launch& launch : rank.launches)
        if (!framework.empty() && isOfRuntime(launch.thread))
            launch.thread = threads.of(framework, std::string(threads.threads()[launch.thread]), false, rank);
    std::sort(rank.launches.begin(), rank.launches.end(), [](const Launch& a, const Launch& b) {
        return std::tie(a.correlation, a.time) < std::tie(b.correlation, b.time);
    });
    std::sort(m_into.begin(), m_into.end());
    for (std::uint32_t i = 0; i < rank.device.size(); ++i) {
        DeviceSpan& work = rank.device[i];
        const std::pair place{work.thread, work.start};
        const auto into = std::lower_bound(m_into.begin(), m_into.end(), std::pair(place, std::string()));
        const auto from = into == m_into.end() || into->first != place ? m_from.end() : m_from.find(into->second);
        if (from == m_from.end()) continue;
        std::tie(work.launched, work.launchedFrom) = from->second;
        const auto call = std::lower_bound(rank.launches.begin(), rank.launches.end(), work.correlation,
                                           [](const Launch& a, std::int64_t b) { return a.correlation < b; });
        if (work.correlation >= 0 && call != rank.launches.end() && call->correlation == work.correlation &&
            call->time > work.launched)
            rank.laterCalls.emplace_back(i, call->time);
    }
}

} // namespace stagewright
