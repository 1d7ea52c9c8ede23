// ReceivedSpans: what a server received, kept as it was sent in two journals beside the run file, and the run file that
// they make. A killed program leaves the journals and the last run file that was written; the next one goes on.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "app/listen/otlp_server.h"
#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "traces/foreign/import_options.h"
#include "traces/import/assemble.h"
#include "traces/import/otlp/otlp_spans.h"
#include "traces/store/recording_lock.h"

namespace stagewright {

class ReceivedSpans {
public:
    // runFile: of runs, which is not there yet, or was left by a killed program together with its journals. most: bytes
    // of the journals; spans that come later are rejected.
    static Result<std::unique_ptr<ReceivedSpans>> open(std::string runFile, std::uint64_t most);
    ~ReceivedSpans();
    ReceivedSpans(const ReceivedSpans&) = delete;
    ReceivedSpans& operator=(const ReceivedSpans&) = delete;

    OtlpAnswer take(bool json, std::string_view body); // by the server's thread
    std::int64_t spans() const;                        // accepted, those of a killed program included
    std::int64_t rejected() const;
    // Writes the run file again: of what was received until now. complete: the last time, so that the journals go.
    // Unreadable: nothing of it makes a run.
    Result<std::vector<ImportedRun>> write(const ImportOptions& options, bool complete, const Progress& progress);
    const std::string& firstJournal() const { return m_journals[0].path; }

private:
    struct Journal {
        std::string path;
        bool json = false;
        int file = -1; // opened by the first request
    };
    explicit ReceivedSpans(std::string runFile, std::uint64_t most);
    Result<void> append(Journal& journal, std::string_view body);
    Result<OtlpSpans> readJournals(const Progress& progress);

    std::string m_runFile;
    RecordingLock m_lock; // held while spans come: what readers of the file ask
    std::uint64_t m_most;
    Journal m_journals[2];
    mutable std::mutex m_mutex; // of the following and the journals' ends
    std::uint64_t m_bytes = 0;
    std::int64_t m_spans = 0, m_rejected = 0;
};

} // namespace stagewright
