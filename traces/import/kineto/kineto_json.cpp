#include "traces/import/kineto/kineto_json.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "schedules/base/shown_text.h"
#include "traces/export/kineto_writer.h"
#include "traces/foreign/json_events.h"
#include "traces/import/kineto/event_repair.h"
#include "traces/import/kineto/trace_events.h"
#include "traces/import/other_files.h"

namespace stagewright {

namespace {

class JsonTraceReader {
public:
    JsonTraceReader(std::string path, const ImportOptions& options, const Progress& progress, bool own = false)
        : m_progress(progress), m_events(TraceEvents::make(std::move(path), options, progress, own))
    {
    }

    bool saidOwnLate() const { return m_events->saidOwnLate(); }

    Result<ForeignFile> read(ByteSource& source, const JsonEvents::Sizes& sizes)
    {
        ForeignRank& rank = m_events->rank();
        JsonEvents events(source, m_progress.stop, sizes);
        JsonEvents::Item item;
        const std::function<bool()> takeOne = [this] { return m_events->take(); };
        while (true) {
            auto more = events.next(item);
            if (m_progress.cancelled()) return fail(ErrorCode::Cancelled, "reading was cancelled");
            if (!more)
                return tl::unexpected(source.damage().empty() ? std::move(more.error())
                                                              : Error{ErrorCode::Unreadable, source.damage(),
                                                                      "copy it again from its source"});
            if (!*more) break;
            if (item.member) {
                m_events->member(item.key, item.text);
                continue;
            }
            std::size_t done = m_parser.parseAll(item.text, m_events->event(), m_events->wanted(), takeOne);
            rank.events += static_cast<std::int64_t>(done);
            for (; done < item.events; ++done) { // behind one that does not parse
                if (!readEvent(events.event(done))) {
                    events.reject(done);
                    break;
                }
                ++rank.events;
            }
            m_progress.tell("reading", source.consumed(), source.size());
            m_events->makeRoom(source);
        }
        m_progress.tell("reading", source.size(), source.size());
        if (!events.sawEvents())
            return fail(ErrorCode::Unreadable, "JSON, but not a trace: traceEvents is missing",
                        "bring what torch.profiler's export_chrome_trace writes");
        rank.damaged += events.damaged();
        if (rank.events == 0)
            return fail(ErrorCode::Unreadable,
                        rank.damaged == 0
                            ? "the trace has no events"
                            : fmt::format("the trace has no readable events: all {} are damaged", rank.damaged),
                        "record it again with torch.profiler, or copy it again from its source");
        for (const std::string& key : events.skipped())
            rank.notes.push_back(fmt::format("{} is larger than {} MiB, so it was not read",
                                             shownText(key.substr(0, 80)), JsonEvents::mostMemberBytes >> 20));
        if (!source.damage().empty())
            rank.notes.push_back(source.damage());
        else if (events.cutOff())
            rank.notes.push_back(fmt::format("the file is cut off after {} events", rank.events));
        return m_events->finish(&source);
    }

private:
    bool readEvent(std::string_view text)
    {
        if (m_parser.parse(text, m_events->event(), m_events->wanted())) return m_events->take();
        m_repair = repairedEvent(text);
        if (m_repair == text) return false;
        const std::size_t size = m_repair.size();
        m_repair.append(JsonEvents::padding, '\0');
        if (!m_parser.parse(std::string_view(m_repair).substr(0, size), m_events->event(), m_events->wanted()))
            return false;
        ++m_events->rank().repaired;
        return m_events->take();
    }

    const Progress& m_progress;
    std::unique_ptr<TraceEvents> m_events;
    KinetoEventParser m_parser;
    std::string m_repair;
};

Result<ForeignFile> readFile(const std::string& path, const ImportOptions& options, const Progress& progress)
{
    if (auto other = otherJsonOf(headOf(path))) return tl::unexpected(std::move(*other));
    STAGEWRIGHT_TRY(auto source, ByteSource::open(path));
    return readJsonTrace(*source, path, options, progress);
}

bool looksLikeJson(std::string_view head)
{
    const std::size_t first = head.find_first_not_of("\xef\xbb\xbf \t\r\n");
    return first != std::string_view::npos && (head[first] == '{' || head[first] == '[');
}

} // namespace

Result<ForeignFile> readJsonTrace(ByteSource& source, const std::string& name, const ImportOptions& options,
                                  const Progress& progress, const JsonEvents::Sizes& sizes)
{
    JsonTraceReader reader(name, options, progress);
    auto file = reader.read(source, sizes);
    if (!file || !reader.saidOwnLate() || !source.restart()) return file;
    return JsonTraceReader(name, options, progress, true).read(source, sizes);
}

namespace formats {

namespace {

Result<WrittenFile> writeFolder(const ExportRequest& request)
{
    if (request.run->timeline->ranks() == 0)
        return fail(ErrorCode::Invalid, fmt::format("run {} has no ranks to write", request.run->info.name));
    STAGEWRIGHT_TRY(const auto counts, writeKinetoFolder(*request.run, request.path, request.progress));
    return WrittenFile{{{"ranks", counts.ranks},
                        {"spans", counts.spans},
                        {"launches", counts.launches},
                        {"memory_events", counts.memoryEvents}},
                       toText(counts)};
}

} // namespace

extern const FormatInfo kineto_json;
const FormatInfo kineto_json{
    .name = "kineto",
    .title = "PyTorch profiler (Kineto)",
    .reads = "Kineto traces of PyTorch's profiler and Chrome JSON, plain or gzip",
    .writes = "a folder with a trace per rank as PyTorch writes them",
    .suffixes = {".json", ".json.gz"},
    .recordMemory = "record with profile_memory=True",
    .recordKernels = "record with ProfilerActivity.CUDA, or record_function around the work, or import the host's "
                     "operators: --host-ops",
    .folder = true,
    .write = writeFolder,
    .sniff = looksLikeJson,
    .read = readFile,
};

} // namespace formats

} // namespace stagewright
