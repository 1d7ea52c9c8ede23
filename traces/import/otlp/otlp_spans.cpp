#include "traces/import/otlp/otlp_spans.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "schedules/base/shown_text.h"
#include "schedules/base/text.h"
#include "traces/import/otlp/span_labels.h"

namespace stagewright {

namespace {

constexpr std::size_t longestSpanName = 512;
constexpr int mostRankNumber = 999'999; // as in files' names

// The value of the first of these keys that is there; null: none.
const std::string* valueOf(const OtlpAttributes& attributes, std::initializer_list<std::string_view> keys)
{
    for (const std::string_view key : keys)
        for (const auto& [name, value] : attributes)
            if (name == key) return &value;
    return nullptr;
}

// −1: there is none, or it is not a number from 0 to `most`.
template <typename Number>
Number numberOf(const OtlpAttributes& attributes, std::initializer_list<std::string_view> keys, Number most)
{
    const std::string* text = valueOf(attributes, keys);
    if (text == nullptr) return -1;
    const auto value = wholeOf<std::int64_t>(*text);
    return value && *value >= 0 && *value <= static_cast<std::int64_t>(most) ? static_cast<Number>(*value) : Number{-1};
}

std::string textOf(const OtlpAttributes& attributes, std::initializer_list<std::string_view> keys)
{
    const std::string* text = valueOf(attributes, keys);
    return text == nullptr ? std::string() : shownText(text->substr(0, longestSpanName));
}

struct Process {
    std::string key; // what no other process has
    std::string job; // "bench-7" of the instance "bench-7-rank5"
    int rank = -1, worldSize = 0;
    OtlpAttributes attributes;
    std::vector<KeptSpan> spans;
};

Process processOf(const OtlpAttributes& attributes)
{
    Process process;
    process.attributes = attributes;
    process.rank = numberOf<int>(attributes, {"dl.rank", "rank"}, mostRankNumber);
    process.worldSize = std::max(0, numberOf<int>(attributes, {"dl.world_size", "world_size"}, mostRankNumber + 1));
    const std::string instance = textOf(attributes, {"service.instance.id"});
    process.job = textOf(attributes, {"service.namespace"}) + "/" + textOf(attributes, {"service.name"});
    if (const std::size_t at = instance.rfind("-rank"); at != std::string::npos)
        if (const auto number = wholeOf<int>(std::string_view(instance).substr(at + 5))) {
            if (process.rank < 0 && *number >= 0 && *number <= mostRankNumber) process.rank = *number;
            process.job += "/" + instance.substr(0, at);
        }
    if (process.rank >= 0) {
        process.key = fmt::format("{} {}", process.job, process.rank);
        return process;
    }
    process.key = fmt::format("{} {} {} {}", process.job, instance, textOf(attributes, {"host.name"}),
                              textOf(attributes, {"process.pid"}));
    return process;
}

// The axes that the process says, in Megatron-LM's default order tp-cp-ep-dp-pp, leftmost fastest: ranks of one pipeline
// are world / pp apart.
PipelinePlace addGroups(const Process& process, ForeignRank& rank)
{
    const auto size = [&](std::string_view dimension) {
        return numberOf<int>(process.attributes, {fmt::format("dl.{}_parallel.size", dimension)}, mostRankNumber + 1);
    };
    const int world = process.worldSize, pipeline = size("pipeline");
    if (process.rank < 0 || process.rank >= world || pipeline <= 0 || world % pipeline != 0) return {};
    const int apart = world / pipeline;
    const auto add = [&](std::string_view name, int first, int by, int members) {
        if (members < 2) return;
        const std::string group = fmt::format("{} {}", name, first);
        for (int k = 0; k < members; ++k) rank.groups[group].push_back(first + k * by);
        rank.groupPurpose[group] = name;
    };
    add("pipeline", process.rank % apart, apart, pipeline);
    if (const int tensor = size("tensor"); tensor > 0 && apart % tensor == 0)
        add("tensor", process.rank / tensor * tensor, 1, tensor);
    if (const int data = size("data"); data > 0 && apart % data == 0)
        add("data", process.rank / apart * apart + process.rank % (apart / data), apart / data, data);
    return {pipeline, process.rank / apart};
}

bool namesSend(std::string_view name) { return name.find("send") != std::string_view::npos; }
bool namesReceive(std::string_view name)
{
    return name.find("recv") != std::string_view::npos || name.find("receive") != std::string_view::npos;
}

// A send or a receive by its name and its peer, which Megatron-LM's spans leave to the place in the pipeline. False: it
// is none, or goes nowhere, as the first stage's receive of a forward.
bool readMessage(const KeptSpan& span, std::string_view name, const PipelinePlace& place, int apart, int rank,
                 ForeignMessage& message)
{
    const bool send = namesSend(name);
    if (send == namesReceive(name)) return false;
    int peer = span.peer;
    constexpr std::string_view megatron = "megatron.p2p.";
    if (peer < 0 && name.starts_with(megatron) && place.place >= 0) {
        const bool forward = name.ends_with("_forward");
        if (!forward && !name.ends_with("_backward")) return false;
        const int to = place.place + (forward == send ? 1 : -1);
        if (to < 0 || to >= place.size) return false;
        peer = rank + (to - place.place) * apart;
    }
    if (peer < 0) return false;
    message.kind = send ? MessageKind::Send : MessageKind::Receive;
    (send ? message.from : message.to) = rank;
    (send ? message.to : message.from) = peer;
    // What goes forward and what goes back between the same ranks do not meet.
    message.tag = name.ends_with("_backward") ? 1 : 0;
    return true;
}

ForeignRank rankOf(Process& process, const NameTable& names)
{
    ForeignRank rank;
    rank.format = "otlp";
    rank.rank = process.rank;
    rank.worldSize = process.worldSize;
    rank.host = textOf(process.attributes, {"host.name"});
    rank.events = static_cast<std::int64_t>(process.spans.size());
    for (const auto& [key, value] : process.attributes)
        if (key != "service.instance.id" && key != "dl.rank" && key != "rank" && key != "process.pid" &&
            key != "host.name" && key.size() <= 80 && rank.environment.size() < 64)
            rank.environment.emplace_back(shownText(key), shownText(value.substr(0, longestSpanName)));
    std::sort(process.spans.begin(), process.spans.end(), [](const KeptSpan& a, const KeptSpan& b) {
        return std::tie(a.start, b.end, a.name) < std::tie(b.start, a.end, b.name);
    });
    const PipelinePlace place = addGroups(process, rank);
    const int apart = place.size > 0 ? process.worldSize / place.size : 0;
    numberPasses(process.spans, names, place, rank.notes);
    std::map<std::uint32_t, std::uint32_t> threads; // by name
    bool megatron = false;
    for (const KeptSpan& span : process.spans) {
        const std::string& name = names[span.name];
        megatron = megatron || name.starts_with("megatron.");
        const auto [thread, added] = threads.emplace(span.thread, static_cast<std::uint32_t>(rank.threads.size()));
        if (added) rank.threads.push_back({names[span.thread], false});
        const bool moves = namesSend(name) || namesReceive(name); // a message's name is not an op's
        ForeignSpan range{span.start, span.end, rank.names.idOf(moves ? name : labelOf(span, name)), thread->second};
        ForeignMessage message;
        if (readMessage(span, name, place, apart, process.rank, message)) {
            message.start = span.start;
            message.end = span.end;
            message.name = rank.names.idOf(message.kind == MessageKind::Send ? "send" : "recv");
            message.group = rank.names.idOf("");
            message.bytes = span.bytes;
            message.thread = range.thread;
            message.work = static_cast<std::int64_t>(rank.annotations.size());
            rank.messages.push_back(message);
        }
        rank.annotations.push_back(range);
    }
    if (megatron)
        rank.notes.emplace_back("times are the host's, when work was queued: what a device did when is unknown");
    if (place.size > 1)
        rank.notes.emplace_back(
            "stages follow from the ranks' numbers in Megatron-LM's default order (tp-cp-ep-dp-pp)");
    return rank;
}

} // namespace

int OtlpSpans::addResource()
{
    m_resources.push_back(&*m_attributes.insert(OtlpAttributes()).first);
    return static_cast<int>(m_resources.size()) - 1;
}

void OtlpSpans::setResource(int resource, OtlpAttributes attributes)
{
    // Those of a process, in each of its requests, are kept once.
    m_resources[static_cast<std::size_t>(resource)] = &*m_attributes.insert(std::move(attributes)).first;
}

bool OtlpSpans::add(int resource, const OtlpSpan& span)
{
    ++m_seen;
    const auto leave = [this](const char* why) {
        ++m_leftOut[why];
        return false;
    };
    if (span.events > 0) m_leftOut["events within spans"] += span.events;
    if (span.name.empty()) return leave("spans without a name");
    if (span.start == 0 || span.end == 0) return leave("spans without a start or an end");
    if (span.end < span.start) return leave("spans that end before they start");
    if (span.end > static_cast<std::uint64_t>(std::numeric_limits<Nanos>::max() / 2))
        return leave("spans at times that can't be");
    if (const std::string* cut = valueOf(span.attributes, {"nemo.span.truncated"}); cut != nullptr && *cut == "true")
        return leave("spans whose end is not real (nemo.span.truncated)");
    if (!span.spanId.empty() && !m_ids.insert(std::hash<std::string>()(span.traceId + '/' + span.spanId)).second)
        return leave("spans that were sent twice");
    constexpr int most = 65'535;
    constexpr std::int64_t far = std::numeric_limits<std::int32_t>::max() - 1;
    KeptSpan kept;
    kept.start = static_cast<Nanos>(span.start);
    kept.end = static_cast<Nanos>(span.end);
    kept.name = m_names.idOf(shownText(span.name.substr(0, longestSpanName)));
    kept.resource = resource;
    std::string thread = textOf(span.attributes, {"thread.name"});
    if (thread.empty())
        thread = valueOf(span.attributes, {"thread.id"}) == nullptr
                     ? std::string("spans")
                     : "thread " + textOf(span.attributes, {"thread.id"});
    kept.thread = m_names.idOf(thread);
    kept.stage = numberOf<int>(span.attributes, {"stage"}, most);
    kept.chunk = numberOf<int>(span.attributes, {"chunk"}, most);
    kept.microbatch = numberOf<int>(span.attributes, {"microbatch", "dl.microbatch_id"}, most);
    kept.peer = numberOf<int>(span.attributes, {"peer"}, mostRankNumber);
    kept.step = numberOf<std::int64_t>(span.attributes, {"megatron.iteration", "iteration", "step"}, far);
    kept.microbatches = numberOf<std::int64_t>(span.attributes, {"num_microbatches"}, most);
    kept.bytes = numberOf<std::int64_t>(span.attributes, {"bytes"}, std::numeric_limits<std::int64_t>::max() / 2);
    m_spans.push_back(kept);
    return true;
}

Result<ForeignFile> OtlpSpans::finish()
{
    std::map<std::string, Process> processes;
    std::vector<Process*> byResource(m_resources.size(), nullptr);
    bool numbered = false;
    std::map<std::string, std::int64_t> jobs; // spans of each, of processes with a rank
    for (const KeptSpan& span : m_spans) {
        Process*& process = byResource[static_cast<std::size_t>(span.resource)];
        if (process == nullptr) {
            Process made = processOf(*m_resources[static_cast<std::size_t>(span.resource)]);
            process = &processes.try_emplace(made.key, std::move(made)).first->second;
        }
        process->spans.push_back(span);
        numbered = numbered || process->rank >= 0;
        if (process->rank >= 0) ++jobs[process->job];
    }
    m_spans = {};
    const auto largest =
        std::max_element(jobs.begin(), jobs.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    ForeignFile file;
    for (auto& [key, process] : processes) {
        const auto count = static_cast<std::int64_t>(process.spans.size());
        if (numbered && process.rank < 0)
            m_leftOut["spans of processes without a rank"] += count;
        else if (numbered && process.job != largest->first)
            m_leftOut["spans of other jobs"] += count;
        else
            file.ranks.push_back(rankOf(process, m_names));
    }
    if (file.ranks.empty())
        return fail(ErrorCode::Unreadable,
                    m_damaged > 0 ? fmt::format("no span can be read: {}", m_damage)
                    : m_seen > 0  ? fmt::format("none of its {} can be placed: {}", counted(m_seen, "span"),
                                               m_leftOut.empty() ? "" : m_leftOut.begin()->first)
                                  : "it has no spans",
                    "bring what an OTLP exporter sends, or the collector's file exporter writes");
    std::sort(file.ranks.begin(), file.ranks.end(),
              [](const ForeignRank& a, const ForeignRank& b) { return a.rank < b.rank; });
    ForeignRank& first = file.ranks.front();
    for (const auto& [why, count] : m_leftOut) first.leftOut[why] += count;
    first.damaged += m_damaged;
    if (!m_damage.empty()) first.notes.push_back(m_damage);
    first.notes.insert(first.notes.end(), m_notes.begin(), m_notes.end());
    // What ranks have in common is said once.
    std::set<std::string> said;
    for (ForeignRank& rank : file.ranks)
        std::erase_if(rank.notes, [&said](const std::string& note) { return !said.insert(note).second; });
    return file;
}

} // namespace stagewright
