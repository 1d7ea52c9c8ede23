#include "traces/import/perfetto/event_args.h"

#include "traces/export/chrome_json.h"
#include "traces/foreign/json_events.h"
#include "traces/import/perfetto/annotations.h"

namespace stagewright {

const PerfettoArgs::Name& PerfettoArgs::named(std::string_view name)
{
    using Use = Name::Use;
    const std::size_t hash = name.empty() ? 0
                                          : name.size() * 7 + static_cast<unsigned char>(name.front()) * 3 +
                                                static_cast<unsigned char>(name.back());
    Name& known = m_names[hash % m_names.size()];
    if (known.text == name) return known;
    known = {std::string(name), Use::Other, KinetoEventParser::reads(name), numberArg(name, m_args),
             textArg(name, m_args)};
    if (name == "correlation") known.use = Use::Correlation;
    if (name == "External id" || name == "external id") known.use = Use::External;
    if (name == "cuda_sync_kind") known.use = Use::Sync;
    if (name == "stream id") known.use = Use::Stream;
    if (name == "device id") known.use = Use::Device;
    return known;
}

void PerfettoArgs::note(std::string_view annotation, const PerfettoSequence& sequence, const NameTable& texts,
                        Notes& to)
{
    const WholeNote whole = wholeNote(annotation, sequence, texts);
    const Name& name = named(whole.name);
    if (whole.value && name.use == Name::Use::Correlation)
        to.correlation = *whole.value;
    else if (whole.value && name.use == Name::Use::External)
        to.external = *whole.value;
    else if (name.read)
        addAnnotation(annotation, sequence, texts, othersOf(to));
    else if (name.use == Name::Use::Sync)
        to.sync = true;
}

std::string& PerfettoArgs::othersOf(Notes& notes)
{
    if (notes.others == 0) {
        if (m_free.empty()) m_free.push_back(static_cast<std::uint32_t>(m_others.size())), m_others.emplace_back();
        notes.others = m_free.back();
        m_free.pop_back();
    }
    return m_others[notes.others];
}

void PerfettoArgs::give(const Notes& notes)
{
    clear();
    if (notes.others != 0) {
        std::string& members = m_others[notes.others];
        readMembers(members);
        members.clear();
        m_free.push_back(notes.others);
    }
    if (notes.correlation != -1) m_args.correlation = notes.correlation;
    if (notes.external != -1) m_args.external = notes.external;
}

void PerfettoArgs::clear()
{
    if (m_set) m_args = {};
    m_set = false;
    m_args.correlation = m_args.external = -1;
    m_members.clear();
}

void PerfettoArgs::readMembers(std::string_view members)
{
    m_json.assign("{").append(members).append("}");
    const std::size_t size = m_json.size();
    m_json.append(JsonEvents::padding, '\0');
    m_set = true;
    if (!m_parser.parseArgs(std::string_view(m_json.data(), size), m_args)) m_args = {};
}

void PerfettoArgs::extra(std::string_view key, std::string_view value, Place& place)
{
    const Name& known = named(key);
    if (known.use == Name::Use::Stream) place.stream = value;
    if (known.use == Name::Use::Device) place.device = value;
    if (known.number != nullptr)
        *known.number = wholeNumberOf(value).value_or(*known.number);
    else if (known.words != nullptr)
        *known.words = value;
    else if (known.read)
        addMember(key, jsonText(value), m_members);
}

void PerfettoArgs::finishExtra()
{
    if (m_members.empty()) return;
    readMembers(m_members);
    m_members.clear();
}

} // namespace stagewright
