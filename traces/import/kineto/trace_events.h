// What becomes of a trace's events, whatever they were read from: ranges, operators, launches, device work, messages,
// memory and counters of a ForeignRank by Kineto's categories and Chrome's phases; processes become ranks.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "traces/foreign/byte_source.h"
#include "traces/foreign/import_options.h"
#include "traces/format/format_registry.h"
#include "traces/import/kineto/kineto_event.h"

namespace stagewright {

class TraceEvents {
public:
    // own: known to be written by this program. Options and progress must outlive it.
    static std::unique_ptr<TraceEvents> make(std::string path, const ImportOptions& options, const Progress& progress,
                                             bool own = false);
    virtual ~TraceEvents() = default;

    virtual ForeignRank& rank() = 0;                        // whose events, damage and notes the reader counts
    virtual KinetoEvent& event() = 0;                       // filled before take()
    virtual bool take() = 0;                                // false: it is damaged
    virtual KinetoEventParser::WantArgs wanted() const = 0; // whose arguments take() uses
    virtual void member(std::string_view key, std::string_view text) = 0; // of the trace besides its events, as JSON
    virtual bool saidOwnLate() const = 0;                // after events that were then read as another program's
    virtual void makeRoom(const ByteSource& source) = 0; // by what of the source has been read
    // Once. again: the trace's JSON, from its start, where work without a launch is looked for a second time; null: it
    // is not. Errors: Cancelled.
    virtual Result<ForeignFile> finish(ByteSource* again) = 0;
};

} // namespace stagewright
