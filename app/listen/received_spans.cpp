#include "app/listen/received_spans.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "traces/foreign/byte_source.h"
#include "traces/import/import.h"
#include "traces/import/otlp/otlp.h"
#include "traces/store/add_runs.h"

namespace stagewright {

namespace fs = std::filesystem;

ReceivedSpans::ReceivedSpans(std::string runFile, std::uint64_t most)
    : m_runFile(std::move(runFile)), m_lock(m_runFile),
      m_most(most), m_journals{{m_runFile + ".received.otlp", false}, {m_runFile + ".received.jsonl", true}}
{
}

ReceivedSpans::~ReceivedSpans()
{
    for (const Journal& journal : m_journals)
        if (journal.file >= 0) close(journal.file);
}

Result<std::unique_ptr<ReceivedSpans>> ReceivedSpans::open(std::string runFile, std::uint64_t most)
{
    std::unique_ptr<ReceivedSpans> out(new ReceivedSpans(std::move(runFile), most));
    std::error_code failed;
    bool left = false;
    for (const Journal& journal : out->m_journals)
        if (const auto size = fs::file_size(journal.path, failed); !failed) {
            left = true;
            out->m_bytes += size;
        }
    if (!left && fs::exists(out->m_runFile, failed))
        return fail(ErrorCode::Usage,
                    fmt::format("{} exists already, and spans go to a file of their own", out->m_runFile),
                    "choose another name with -o, or remove it");
    STAGEWRIGHT_CHECK(mayAddRuns(out->m_runFile));
    STAGEWRIGHT_CHECK(out->m_lock.acquire());
    if (left) {
        STAGEWRIGHT_TRY(const auto before, out->readJournals({}));
        out->m_spans = before.kept();
    }
    return out;
}

std::int64_t ReceivedSpans::spans() const
{
    const std::lock_guard lock(m_mutex);
    return m_spans;
}

std::int64_t ReceivedSpans::rejected() const
{
    const std::lock_guard lock(m_mutex);
    return m_rejected;
}

OtlpAnswer ReceivedSpans::take(bool json, std::string_view body)
{
    OtlpSpans spans;
    const auto source = byteSourceOf(std::string(body));
    (void)readOtlp(*source, json, {}, spans);
    if (spans.damaged() > 0) return {OtlpAnswer::Is::Damaged, 0, spans.firstDamage()};
    const std::lock_guard lock(m_mutex);
    if (m_bytes + body.size() > m_most) {
        m_rejected += spans.spans();
        return {OtlpAnswer::Is::Taken, spans.spans(),
                fmt::format("{} of spans were received, which is the most: see --max-size", formatBytes(m_most))};
    }
    if (spans.spans() > 0)
        if (auto kept = append(m_journals[json ? 1 : 0], body); !kept)
            return {OtlpAnswer::Is::Busy, 0, kept.error().message};
    m_spans += spans.kept();
    const std::int64_t rejected = spans.spans() - spans.kept();
    m_rejected += rejected;
    return {OtlpAnswer::Is::Taken, rejected,
            rejected > 0 ? "spans need a name, a start and an end behind it" : std::string()};
}

// A request in JSON is one line; those in protobuf read as one where nothing is between them.
Result<void> ReceivedSpans::append(Journal& journal, std::string_view body)
{
    if (journal.file < 0) journal.file = ::open(journal.path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    std::string text(body);
    if (journal.json) {
        std::replace_if(
            text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
        text += '\n';
    }
    const off_t before = journal.file < 0 ? 0 : lseek(journal.file, 0, SEEK_END);
    for (std::size_t done = 0; journal.file >= 0 && done < text.size();) {
        const ssize_t written = ::write(journal.file, text.data() + done, text.size() - done);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) {
            const int problem = errno;
            // a part of a request would spoil those that follow
            [[maybe_unused]] const int cut = ftruncate(journal.file, before);
            return fail(ErrorCode::Failed, fmt::format("file {}: {}", journal.path, std::strerror(problem)));
        }
        done += static_cast<std::size_t>(written);
    }
    if (journal.file < 0)
        return fail(ErrorCode::Failed, fmt::format("file {}: {}", journal.path, std::strerror(errno)));
    m_bytes += text.size();
    return {};
}

Result<OtlpSpans> ReceivedSpans::readJournals(const Progress& progress)
{
    OtlpSpans spans;
    for (const Journal& journal : m_journals) {
        std::error_code failed;
        if (!fs::exists(journal.path, failed)) continue;
        STAGEWRIGHT_TRY(auto source, ByteSource::open(journal.path));
        STAGEWRIGHT_CHECK(readOtlp(*source, journal.json, progress, spans));
    }
    return spans;
}

Result<std::vector<ImportedRun>> ReceivedSpans::write(const ImportOptions& options, bool complete,
                                                      const Progress& progress)
{
    STAGEWRIGHT_TRY(auto spans, readJournals(progress));
    if (spans.spans() == 0)
        return fail(ErrorCode::Unreadable, "no spans were received",
                    "start the job with OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://HOST:PORT/v1/traces");
    STAGEWRIGHT_TRY(auto file, spans.finish());
    for (ForeignRank& rank : file.ranks) rank.source = m_runFile;
    STAGEWRIGHT_TRY(auto runs, assemble(std::move(file.ranks), fs::path(m_runFile).stem().string(), options, progress));
    tellApart(runs);
    std::vector<const Run*> stored;
    for (ImportedRun& imported : runs) {
        Run& run = imported.run;
        // Its source is the run file itself: there is nothing to import again.
        std::erase_if(run.configuration,
                      [](const auto& fact) { return fact.first == "sources" || fact.first == "files"; });
        if (run.info.createdUnixMs == 0)
            run.info.createdUnixMs = std::chrono::duration_cast<std::chrono::milliseconds>(
                                         std::chrono::system_clock::now().time_since_epoch())
                                         .count();
        run.info.state = complete ? RunState::Complete : RunState::Receiving;
        stored.push_back(&run);
    }
    const std::string next = m_runFile + ".new";
    std::error_code failed;
    fs::remove(next, failed);
    STAGEWRIGHT_TRY(const auto ids, addRuns(next, stored, progress));
    for (std::size_t i = 0; i < ids.size(); ++i) runs[i].run.info.id = ids[i];
    fs::rename(next, m_runFile, failed);
    if (failed)
        return fail(ErrorCode::Failed, fmt::format("file {}: {}", m_runFile, failed.message()),
                    fmt::format("the runs are in {}", next));
    if (complete)
        for (const Journal& journal : m_journals) fs::remove(journal.path, failed);
    return runs;
}

} // namespace stagewright
