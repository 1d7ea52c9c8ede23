// The reader of CUPTI dumps on any bytes: it may refuse, with a reason, never crash; what it accepts it writes again
// unchanged. If CUPTI is present, accepted input goes on to the decoder and CUPTI's own walk.
#include <cstdint>
#include <cstring>
#include <string_view>

#include "profiler/cupti/cupti_dump.h"
#include "require.h"
#ifdef STAGEWRIGHT_WITH_CUPTI
#include "profiler/cupti/module/cupti_decode.h"
#endif

using namespace stagewright;

namespace {

#ifdef STAGEWRIGHT_WITH_CUPTI
void decode(CuptiDump dump)
{
    dump.cuptiVersion = cupti::headerVersion; // else nearly every mutant ends here
    const auto trace = cupti::decodeDump(dump);
    if (!trace) {
        require(!trace.error().message.empty());
        return;
    }
    require(trace->unknownRecords == 0);
    for (const GpuRecord& record : trace->records) {
        require(record.name < trace->names.size());
        if (record.isWork()) require(!workName(*trace, record).empty());
    }
}

// The sizes around the records rarely survive a mutation: whatever the bytes are, their end is a buffer, too.
void decodeAsBuffer(std::string_view bytes)
{
    constexpr std::size_t begin = 43; // of the records in every_kind.cuptidump
    if (bytes.size() <= begin) return;
    CuptiDump dump;
    dump.strings.append("kernel").append(1, '\0');
    dump.buffers.emplace_back(bytes.begin() + begin,
                              bytes.begin() + static_cast<std::ptrdiff_t>(begin + (bytes.size() - begin) / 8 * 8));
    std::vector<std::uint8_t>& buffer = dump.buffers.front();
    std::size_t whole = 0; // records that fit: CUPTI sees those
    for (std::size_t size = 1; size != 0 && buffer.size() - whole >= sizeof(CUpti_ActivityKind);) {
        CUpti_ActivityKind kind = CUPTI_ACTIVITY_KIND_INVALID;
        std::memcpy(&kind, buffer.data() + whole, sizeof kind);
        size = cupti::recordBytes(kind);
        if (size > buffer.size() - whole) break;
        whole += size;
    }
    buffer.resize(whole);
    decode(std::move(dump));
}
#endif

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
#ifdef STAGEWRIGHT_WITH_CUPTI
    decodeAsBuffer(bytes);
#endif
    const auto dump = readCuptiDump(bytes);
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
    decode(*dump);
#endif
    return 0;
}
