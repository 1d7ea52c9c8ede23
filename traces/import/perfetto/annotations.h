// DebugAnnotations as members of a JSON object, in which Kineto's arguments are read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "traces/foreign/foreign_trace.h"
#include "traces/import/perfetto/sequence_state.h"

namespace stagewright {

// Appends ',"name":value' to what is in `json` (without a comma to nothing). Lists that are one string, such as the
// sizes of an operator's inputs, become lists. Throws protozero::exception where it is damaged.
void addAnnotation(std::string_view annotation, const PerfettoSequence& sequence, const NameTable& texts,
                   std::string& json);
// Its name and, where its value is one, its whole number; as above.
struct WholeNote {
    std::string_view name;
    std::optional<std::int64_t> value;
};
WholeNote wholeNote(std::string_view annotation, const PerfettoSequence& sequence, const NameTable& texts);
void addMember(std::string_view name, std::string_view value, std::string& json); // value: JSON

} // namespace stagewright
