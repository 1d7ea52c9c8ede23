#include "traces/import/perfetto/sequence_state.h"

#include "traces/export/perfetto_fields.h"
#include "traces/import/perfetto/wire.h"

namespace stagewright {

namespace pf = perfetto;

void PerfettoSequence::readCounterNames(std::string_view descriptor, GpuCounters& to)
{
    Fields<pf::GpuCounterDescriptor> message(descriptor.data(), descriptor.size());
    while (message.next()) {
        if (message.tag() != pf::GpuCounterDescriptor::specs || !message.isBytes()) continue;
        Fields<pf::GpuCounterSpec> spec(message.bytes());
        std::uint64_t id = 0;
        std::string name;
        while (spec.next()) {
            if (spec.tag() == pf::GpuCounterSpec::id && spec.isNumber())
                id = spec.number();
            else if (spec.tag() == pf::GpuCounterSpec::name && spec.isBytes())
                name = std::string(spec.bytes());
        }
        to.names[id] = std::move(name);
    }
}

void PerfettoSequence::intern(std::string_view data, NameTable& texts)
{
    Fields<pf::Interned> message(data.data(), data.size());
    while (message.next()) {
        Table* table = nullptr;
        switch (message.tag()) {
        case pf::Interned::categories: table = &m_categories; break;
        case pf::Interned::names: table = &m_names; break;
        case pf::Interned::annotationNames: table = &m_noteNames; break;
        case pf::Interned::annotationTexts: table = &m_noteTexts; break;
        case pf::Interned::gpuSpecifications: table = &m_specifications; break;
        case pf::Interned::gpuCounterDescriptors: {
            if (!message.isBytes()) break;
            Fields<pf::InternedGpuCounters> entry(message.bytes());
            std::uint64_t iid = 0;
            GpuCounters counters;
            while (entry.next()) {
                if (entry.tag() == pf::InternedGpuCounters::iid && entry.isNumber())
                    iid = entry.number();
                else if (entry.tag() == pf::InternedGpuCounters::gpu && entry.isNumber())
                    counters.gpu = entry.small();
                else if (entry.tag() == pf::InternedGpuCounters::descriptor && entry.isBytes()) {
                    const auto view = entry.bytes();
                    readCounterNames({view.data(), view.size()}, counters);
                }
            }
            m_counters[iid] = std::move(counters);
            continue;
        }
        default: break;
        }
        if (table == nullptr || !message.isBytes()) continue;
        // All of these have the number first and the text second.
        Fields<pf::InternedName> entry(message.bytes());
        std::uint64_t iid = 0;
        std::string_view text;
        while (entry.next()) {
            if (entry.tag() == pf::InternedName::iid && entry.isNumber())
                iid = entry.number();
            else if (entry.tag() == pf::InternedName::name && entry.isBytes()) {
                const auto view = entry.bytes();
                text = {view.data(), view.size()};
            }
        }
        table->set(iid, texts.idOf(text));
    }
}

void PerfettoSequence::clear()
{
    for (Table* table : {&m_names, &m_categories, &m_noteNames, &m_noteTexts, &m_specifications}) table->clear();
    m_counters.clear();
    defaultTrack = 0;
    defaultClock = 0;
}

const PerfettoSequence::GpuCounters* PerfettoSequence::gpuCounters(std::uint64_t iid) const
{
    const auto found = m_counters.find(iid);
    return found == m_counters.end() ? nullptr : &found->second;
}

} // namespace stagewright
