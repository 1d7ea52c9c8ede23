#include "profiler/cupti/gpu_record.h"

#include <cstdlib>
#include <functional>

#include <cxxabi.h>

namespace stagewright {

namespace {

constexpr std::size_t longestName = 120;

// UTF-8 stays whole: kernel names are usually ASCII, but need not be.
std::string shortened(std::string text)
{
    if (text.size() <= longestName) return text;
    std::size_t end = longestName - 3;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    text.resize(end);
    return text + "...";
}

} // namespace

GpuNames::GpuNames(std::vector<std::string>& names) : m_names(names)
{
    if (m_names.empty()) m_names.emplace_back();
    grow();
}

void GpuNames::grow()
{
    std::size_t size = 64;
    while (size < 2 * (m_names.size() + 1)) size *= 2;
    m_slots.assign(size, 0);
    for (std::size_t i = 1; i < m_names.size(); ++i) {
        std::size_t at = std::hash<std::string_view>{}(m_names[i]) & (size - 1);
        while (m_slots[at] != 0) at = (at + 1) & (size - 1);
        m_slots[at] = static_cast<std::uint32_t>(i);
    }
}

std::uint32_t GpuNames::intern(std::string_view name)
{
    if (name.empty()) return 0;
    const std::size_t mask = m_slots.size() - 1;
    std::size_t at = std::hash<std::string_view>{}(name)&mask;
    for (; m_slots[at] != 0; at = (at + 1) & mask) {
        if (m_names[m_slots[at]] == name) return m_slots[at];
    }
    const auto index = static_cast<std::uint32_t>(m_names.size());
    m_names.emplace_back(name);
    m_slots[at] = index;
    if (2 * m_names.size() > m_slots.size()) grow();
    return index;
}

void append(GpuTrace& trace, const GpuTrace& other)
{
    GpuNames names(trace.names);
    std::vector<std::uint32_t> renamed;
    for (const std::string& name : other.names) renamed.push_back(names.intern(name));
    trace.records.reserve(trace.records.size() + other.records.size());
    for (GpuRecord record : other.records) {
        record.name = record.name < renamed.size() ? renamed[record.name] : 0;
        trace.records.push_back(record);
    }
    trace.dropped += other.dropped;
    trace.damagedBuffers += other.damagedBuffers;
    trace.unknownRecords += other.unknownRecords;
    trace.truncated = trace.truncated || other.truncated;
}

Collective collectiveOf(std::string_view kernelName)
{
    std::size_t at = kernelName.find("ncclDevKernel");
    if (at == std::string_view::npos) at = kernelName.find("ncclKernel");
    if (at == std::string_view::npos) return Collective::None;
    const std::string_view rest = kernelName.substr(at);
    const auto has = [rest](std::string_view word) { return rest.find(word) != std::string_view::npos; };
    if (has("SendRecv")) return Collective::SendRecv;
    if (has("AllReduce")) return Collective::AllReduce;
    if (has("ReduceScatter")) return Collective::ReduceScatter;
    if (has("AllGather")) return Collective::AllGather;
    if (has("Broadcast")) return Collective::Broadcast;
    if (has("_Reduce")) return Collective::Reduce;
    return Collective::Other;
}

std::string_view toText(Collective collective)
{
    switch (collective) {
    case Collective::None: return "";
    case Collective::SendRecv: return "send and receive";
    case Collective::AllReduce: return "all-reduce";
    case Collective::ReduceScatter: return "reduce-scatter";
    case Collective::AllGather: return "all-gather";
    case Collective::Broadcast: return "broadcast";
    case Collective::Reduce: return "reduce";
    case Collective::Other: break;
    }
    return "collective";
}

std::string readableKernelName(std::string_view name)
{
    std::string text(name);
    if (name.starts_with("_Z")) {
        int status = 0;
        char* demangled = abi::__cxa_demangle(text.c_str(), nullptr, nullptr, &status);
        if (status == 0 && demangled != nullptr) text = demangled;
        std::free(demangled); // NOLINT: __cxa_demangle's buffer
    }
    // The parameter list is the last "(" outside of template arguments; what is before the name's last free blank is
    // the return type. "(anonymous namespace)" is part of the name.
    int depth = 0;
    std::size_t begin = 0;
    std::size_t end = text.size();
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text.compare(i, 21, "(anonymous namespace)") == 0) {
            i += 20;
            continue;
        }
        if (text[i] == '<') ++depth;
        if (text[i] == '>') --depth;
        if (depth != 0) continue;
        if (text[i] == '(' && i > 0) {
            end = i;
            break;
        }
        if (text[i] == ' ') begin = i + 1;
    }
    if (begin >= end) begin = 0;
    return shortened(text.substr(begin, end - begin));
}

std::string workName(const GpuTrace& trace, const GpuRecord& record)
{
    switch (record.kind) {
    case GpuRecordKind::Kernel: {
        const std::string_view name =
            record.name < trace.names.size() ? std::string_view(trace.names[record.name]) : std::string_view();
        return name.empty() ? "kernel without a name" : readableKernelName(name);
    }
    case GpuRecordKind::PeerCopy: return "copy between devices";
    case GpuRecordKind::Memset: return "memset";
    case GpuRecordKind::Copy: break;
    default: return "work";
    }
    switch (record.detail) { // CUPTI's copy kinds
    case 1: return "copy host to device";
    case 2: return "copy device to host";
    case 8: return "copy within the device";
    case 9: return "copy within the host";
    case 10: return "copy between devices";
    default: return "copy";
    }
}

} // namespace stagewright
