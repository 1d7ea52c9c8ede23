// Perfetto traces of any bytes: read and made runs of, they may be refused, never crash or hang; a run's schedule is
// valid, its timeline is not empty.
#include <cstdint>
#include <string>
#include <string_view>

#include "require.h"
#include "schedules/check/validate.h"
#include "traces/import/assemble.h"
#include "traces/import/perfetto/packets.h"
#include "traces/import/perfetto/perfetto.h"

using namespace stagewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    (void)startsLikePerfetto(bytes);
    const auto count = [&](std::size_t window) {
        const auto source = byteSourceOf(std::string(bytes));
        PerfettoPackets packets(*source, window);
        std::string_view packet;
        std::int64_t out = 0;
        while (packets.next(packet)) ++out;
        return std::pair(out, packets.damaged());
    };
    require(count(1 << 16) == count(7 + size % 50)); // whatever the window
    ImportOptions options;
    options.hostOps = size % 2 == 1;
    const auto source = byteSourceOf(std::string(bytes));
    auto file = readPerfettoTrace(*source, "fuzz_rank0.pftrace", options, {});
    if (!file) {
        require(!file.error().message.empty());
        return 0;
    }
    const auto runs = assemble(std::move(file->ranks), "fuzz", options);
    if (!runs) {
        require(!runs.error().message.empty());
        return 0;
    }
    for (const ImportedRun& imported : *runs) {
        require(imported.run.timeline && !imported.run.timeline->empty());
        if (imported.run.schedule) require(validate(*imported.run.schedule).valid());
    }
    return 0;
}
