// JSON traces of any bytes: read and made runs of, they may be refused, never crash or hang; the same is read of them
// whatever the windows and batches; as a memory snapshot or timeline they are read or refused, too, and rules drafted from their
// names can be read; a run's schedule is valid, and its timeline comes back from what is made of it. The bytes serve as
// a file of rules too.
#include <cstdint>
#include <string>
#include <string_view>

#include "require.h"
#include "schedules/check/validate.h"
#include "traces/analysis/bubbles.h"
#include "traces/analysis/device_idle.h"
#include "traces/analysis/range_stacks.h"
#include "traces/import/assemble.h"
#include "traces/import/kineto/kineto_json.h"
#include "traces/import/memory/memory_snapshot.h"
#include "traces/import/memory/memory_timeline.h"

using namespace stagewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (const auto rules = LabelRules::parse(text.substr(0, 400)); !rules) require(!rules.error().message.empty());
    ImportOptions options;
    options.hostOps = size % 2 == 1;
    options.suggestRules = size % 3 == 1;
    const auto snapshotSource = byteSourceOf(std::string(text));
    if (auto snapshot = readMemorySnapshot(*snapshotSource, "fuzz_rank0.json", {}); !snapshot)
        require(!snapshot.error().message.empty());
    else if (const auto made = assemble(std::move(snapshot->ranks), "snapshot", options); !made)
        require(!made.error().message.empty());
    const auto sizesSource = byteSourceOf(std::string(text));
    if (auto sizes = readMemoryTimeline(*sizesSource, "fuzz_rank0.json", {}); !sizes)
        require(!sizes.error().message.empty());
    else if (const auto made = assemble(std::move(sizes->ranks), "sizes", options); !made)
        require(!made.error().message.empty());
    const auto source = byteSourceOf(std::string(text));
    auto file = readJsonTrace(*source, "fuzz_rank0.json", options, {});
    const auto again = byteSourceOf(std::string(text));
    const auto inPieces = readJsonTrace(*again, "fuzz_rank0.json", options, {}, {29 + size % 100, 1 + size % 300});
    require(file.has_value() == inPieces.has_value());
    if (!file) {
        require(!file.error().message.empty() && file.error().message == inPieces.error().message);
        return 0;
    }
    require(file->ranks.size() == inPieces->ranks.size());
    for (std::size_t r = 0; r < file->ranks.size(); ++r) {
        const ForeignRank& a = file->ranks[r];
        const ForeignRank& b = inPieces->ranks[r];
        require(a.damaged == b.damaged);
        require(a.events == b.events && a.repaired == b.repaired);
        require(a.annotations.size() == b.annotations.size() && a.device.size() == b.device.size() &&
                a.launches.size() == b.launches.size());
    }
    auto runs = assemble(std::move(file->ranks), "fuzz", options);
    if (!runs) {
        require(!runs.error().message.empty());
        return 0;
    }
    for (const ImportedRun& imported : *runs) {
        if (imported.rangeNames && imported.rangeNames->draft)
            require(LabelRules::parse(imported.rangeNames->draft->text).has_value());
        const Run& run = imported.run;
        require(run.timeline && !run.timeline->empty());
        require(run.timeline->steps() > 0);
        if (run.schedule)
            require(validate(*run.schedule).valid());
        else
            require(!imported.notRebuilt.empty());
        for (int step = 0; step < std::min(run.timeline->steps(), 4); ++step) {
            (void)analyseBubbles(*run.timeline, step);
            for (const RankDeviceIdle& rank : analyseDeviceIdle(*run.timeline, step)) {
                Nanos sum = 0;
                for (const Nanos time : rank.time) sum += time;
                require(sum == rank.window);
            }
            Nanos folded = 0;
            for (const StackNode& node : foldRanges(*run.timeline, step).nodes) {
                require(node.self >= 0 && node.total >= node.self);
                folded += node.depth == 0 ? node.total : 0;
            }
            require(folded == foldRanges(*run.timeline, step).total);
        }
    }
    return 0;
}
