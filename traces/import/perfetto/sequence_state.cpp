#include "traces/import/perfetto/sequence_state.h"

#include <protozero/pbf_message.hpp>

#include "traces/export/perfetto_fields.h"
#include "traces/import/perfetto/wire.h"

namespace stagewright {

namespace pf = perfetto;

void PerfettoSequence::readCounterNames(std::string_view descriptor, GpuCounters& to)
{
    protozero::pbf_message<pf::GpuCounterDescriptor> message(descriptor.data(), descriptor.size());
    while (message.next()) {
        if (message.tag() != pf::GpuCounterDescriptor::specs || !isBytes(message)) {
            message.skip();
            continue;
        }
        protozero::pbf_message<pf::GpuCounterSpec> spec(message.get_message());
        std::uint64_t id = 0;
        std::string name;
        while (spec.next()) {
            if (spec.tag() == pf::GpuCounterSpec::id && isNumber(spec))
                id = spec.get_uint64();
            else if (spec.tag() == pf::GpuCounterSpec::name && isBytes(spec))
                name = spec.get_string();
            else
                spec.skip();
        }
        to.names[id] = std::move(name);
    }
}

void PerfettoSequence::intern(std::string_view data, NameTable& texts)
{
    protozero::pbf_message<pf::Interned> message(data.data(), data.size());
    while (message.next()) {
        Table* table = nullptr;
        switch (message.tag()) {
        case pf::Interned::categories: table = &m_categories; break;
        case pf::Interned::names: table = &m_names; break;
        case pf::Interned::annotationNames: table = &m_noteNames; break;
        case pf::Interned::annotationTexts: table = &m_noteTexts; break;
        case pf::Interned::gpuSpecifications: table = &m_specifications; break;
        case pf::Interned::gpuCounterDescriptors: {
            if (!isBytes(message)) break;
            protozero::pbf_message<pf::InternedGpuCounters> entry(message.get_message());
            std::uint64_t iid = 0;
            GpuCounters counters;
            while (entry.next()) {
                if (entry.tag() == pf::InternedGpuCounters::iid && isNumber(entry))
                    iid = entry.get_uint64();
                else if (entry.tag() == pf::InternedGpuCounters::gpu && isNumber(entry))
                    counters.gpu = entry.get_int32();
                else if (entry.tag() == pf::InternedGpuCounters::descriptor && isBytes(entry)) {
                    const auto view = entry.get_view();
                    readCounterNames({view.data(), view.size()}, counters);
                } else
                    entry.skip();
            }
            m_counters[iid] = std::move(counters);
            continue;
        }
        default: break;
        }
        if (table == nullptr || !isBytes(message)) {
            message.skip();
            continue;
        }
        // All of these have the number first and the text second.
        protozero::pbf_message<pf::InternedName> entry(message.get_message());
        std::uint64_t iid = 0;
        std::string_view text;
        while (entry.next()) {
            if (entry.tag() == pf::InternedName::iid && isNumber(entry))
                iid = entry.get_uint64();
            else if (entry.tag() == pf::InternedName::name && isBytes(entry)) {
                const auto view = entry.get_view();
                text = {view.data(), view.size()};
            } else
                entry.skip();
        }
        (*table)[iid] = texts.idOf(text);
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
