// The reader of CUPTI dumps on any bytes: it may refuse, with a reason, never crash; what it takes it writes again as it was. Where
// CUPTI is, what it took goes on to the decoder and CUPTI's own walk.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "profiler/cupti/cupti_dump.h"
#ifdef STAGEWRIGHT_WITH_CUPTI
#include "profiler/cupti/module/cupti_decode.h"
#endif

using namespace stagewright;

namespace {

void require(bool condition)
{
    if (!condition) std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    auto dump = readCuptiDump(bytes);
    if (!dump) {
        require(!dump.error().message.empty());
        return 0;
    }
    require(writeCuptiDump(*dump) == bytes);
    for (std::uint64_t field = 0; field < dump->strings.size() + 3; field += 1 + field / 16) {
        const auto name = nameInDump(*dump, field);
        require(name.has_value() == (field <= dump->strings.size()));
    }
#ifdef STAGEWRIGHT_WITH_CUPTI
    dump->cuptiVersion = cupti::headerVersion; // else nearly every mutant ends here
    const auto trace = cupti::decodeDump(*dump);
    if (!trace) {
        require(!trace.error().message.empty());
        return 0;
    }
    require(trace->unknownRecords == 0);
    for (const GpuRecord& record : trace->records) {
        require(record.name < trace->names.size());
        if (record.isWork()) require(!workName(*trace, record).empty());
    }
#endif
    return 0;
}
