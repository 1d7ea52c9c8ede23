// OTLP of any bytes, as JSON and as protobuf: read and made runs of, it may be refused, never crash or hang; every span
// is kept or counted, a run's schedule is valid, its timeline is not empty.
#include <cstdint>
#include <string>
#include <string_view>

#include "require.h"
#include "schedules/check/validate.h"
#include "traces/import/assemble.h"
#include "traces/import/otlp/otlp.h"
#include "traces/import/otlp/otlp_protobuf.h"

using namespace stagewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    (void)startsLikeOtlp(bytes);
    for (const bool json : {true, false}) {
        if (json != startsLikeOtlpJson(bytes) && size % 8 != 0) continue;
        const auto source = byteSourceOf(std::string(bytes));
        OtlpSpans spans;
        require(readOtlp(*source, json, {}, spans).has_value());
        const std::int64_t seen = spans.spans();
        auto file = spans.finish();
        if (!file) {
            require(!file.error().message.empty() && !file.error().remedy.empty());
            continue;
        }
        std::int64_t counted = 0;
        for (const ForeignRank& rank : file->ranks) {
            counted += static_cast<std::int64_t>(rank.annotations.size());
            for (const auto& [what, count] : rank.leftOut) counted += what.starts_with("spans ") ? count : 0;
        }
        require(counted == seen);
        const auto runs = assemble(std::move(file->ranks), "fuzz", {});
        if (!runs) {
            require(!runs.error().message.empty());
            continue;
        }
        for (const ImportedRun& imported : *runs) {
            require(imported.run.timeline && !imported.run.timeline->empty());
            if (imported.run.schedule) require(validate(*imported.run.schedule).valid());
        }
    }
    return 0;
}
